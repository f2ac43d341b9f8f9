{{- /* The name of everything of this release: "cotter-operator" for a release named cotter. */}}
{{- define "cotter.name" -}}
{{- printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "cotter.account" -}}
{{- default (include "cotter.name" .) .Values.serviceAccount.name -}}
{{- end }}

{{- define "cotter.selector" -}}
app.kubernetes.io/name: cotter-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* managed-by is Helm here: `cotter` marks what the operator itself makes. */}}
{{- define "cotter.labels" -}}
{{ include "cotter.selector" . }}
app.kubernetes.io/part-of: cotter
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
