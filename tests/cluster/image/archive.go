package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// The shapes below are those of the OCI image specification 1.1, as far as a runtime reads them.

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type runConfig struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

type imageConfig struct {
	Created      string    `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

const (
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	epoch        = "1970-01-01T00:00:00Z"
)

// archive writes an OCI layout as one tar file. A blob that was added twice is stored once.
type archive struct {
	tar     *tar.Writer
	written map[string]bool
}

// writeArchive makes the whole image and returns its manifest's digest. The file appears complete or not at all.
func writeArchive(asked *request) (string, error) {
	if err := os.MkdirAll(filepath.Dir(asked.out), 0o755); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(asked.out), ".image-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	digest, err := writeLayout(&archive{tar: tar.NewWriter(file), written: map[string]bool{}}, asked)
	if err != nil {
		return "", err
	}
	return digest, os.Rename(file.Name(), asked.out)
}

func writeLayout(to *archive, asked *request) (string, error) {
	if err := to.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return "", err
	}
	described := manifest{SchemaVersion: 2, MediaType: typeManifest}
	config := imageConfig{Created: epoch, Architecture: runtime.GOARCH, OS: "linux", Config: asked.config, RootFS: rootFS{Type: "layers"}}
	for _, content := range asked.layers {
		if len(content.entries) == 0 {
			continue
		}
		layer, err := to.addLayer(content)
		if err != nil {
			return "", err
		}
		described.Layers = append(described.Layers, layer)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, layer.Digest)
	}
	var err error
	if described.Config, err = to.addJSON(typeConfig, config); err != nil {
		return "", err
	}
	top, err := to.addJSON(typeManifest, described)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: named(top, asked.names)})
	if err != nil {
		return "", err
	}
	if err := to.add("index.json", content); err != nil {
		return "", err
	}
	return top.Digest, to.tar.Close()
}

// named repeats the manifest for each name. containerd takes the first annotation for the name; other tools read the second.
func named(manifest descriptor, names []string) []descriptor {
	list := make([]descriptor, 0, len(names))
	for _, name := range names {
		manifest.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
		list = append(list, manifest)
	}
	return list
}

// addLayer goes through the layer twice, first for its size and digest, rather than hold it in memory.
func (a *archive) addLayer(content *layer) (descriptor, error) {
	digest, size := sha256.New(), counter(0)
	if err := content.write(io.MultiWriter(digest, &size)); err != nil {
		return descriptor{}, err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	described := descriptor{MediaType: typeLayer, Digest: "sha256:" + sum, Size: int64(size)}
	if a.written[sum] {
		return described, nil
	}
	a.written[sum] = true
	if err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "blobs/sha256/" + sum, Mode: 0o644, Size: int64(size)}); err != nil {
		return descriptor{}, err
	}
	again := sha256.New()
	if err := content.write(io.MultiWriter(a.tar, again)); err != nil {
		return descriptor{}, err
	}
	if hex.EncodeToString(again.Sum(nil)) != sum {
		return descriptor{}, fmt.Errorf("a file changed while it was read; make the image again")
	}
	return described, nil
}

func (a *archive) addJSON(mediaType string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: int64(len(content))}, a.add("blobs/sha256/"+name, content)
}

func (a *archive) add(name string, content []byte) error {
	if err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := io.Copy(a.tar, bytes.NewReader(content))
	return err
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(bytes []byte) (int, error) {
	*c += counter(len(bytes))
	return len(bytes), nil
}
