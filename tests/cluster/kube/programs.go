package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	helm "helm.sh/helm/v4/pkg/cmd"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs names them; tests/cluster/lib/programs.sh makes a link for each.
var programs = map[string]program{
	"coredns":                 runDNS,
	"etcd":                    runEtcd,
	"helm":                    runHelm,
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllers.NewControllerManagerCommand),
	"kube-proxy":              component(proxy.NewProxyCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 component(kubectl.NewDefaultKubectlCommand),
	"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runDNS names the plugins that are linked in: CoreDNS runs them in the order of this list, not of the Corefile.
func runDNS() int {
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
	return 0
}

func runHelm() int {
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		return 1
	}
	err = command.Execute()
	var exit helm.CommandError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode
	default:
		return 1
	}
}
