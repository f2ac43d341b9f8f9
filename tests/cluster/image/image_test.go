package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sources makes the files that the images below are made of.
func sources(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o700, "tree/text": 0o600, "tree/below/other": 0o644} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("text", filepath.Join(root, "tree", "link")); err != nil {
		t.Fatal(err)
	}
	return root
}

func digestOf(t *testing.T, flags ...string) string {
	t.Helper()
	asked, err := parse(append([]string{"--name", "cotter.test/x:1", "--out", filepath.Join(t.TempDir(), "x.tar")}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := writeArchive(asked)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestSameContentGivesSameDigest(t *testing.T) {
	first, second := sources(t), sources(t)
	if err := os.Chtimes(filepath.Join(second, "run"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	before := digestOf(t, "--file", first+"/run:/run", "--tree", first+"/tree:/srv")
	if after := digestOf(t, "--tree", second+"/tree:/srv", "--file", second+"/run:/run"); before != after {
		t.Errorf("another time and another order of flags changed the digest from %s to %s", before, after)
	}
	if err := os.WriteFile(filepath.Join(second, "tree", "text"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := digestOf(t, "--file", second+"/run:/run", "--tree", second+"/tree:/srv"); before == after {
		t.Errorf("a changed file did not change the digest %s", before)
	}
}

func TestLayerHoldsWhatWasAskedFor(t *testing.T) {
	root, asked := sources(t), newLayer()
	for _, err := range []error{
		asked.addFile(root + "/run:/usr/bin/run"), asked.addTree(root + "/tree:/srv"),
		asked.addDirectory("/tmp:1777"), asked.addFile(root + "/run:/srv/owned:0640:65532"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var content bytes.Buffer
	if err := asked.write(&content); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"srv/ 755 0", "srv/below/ 755 0", "srv/below/other 644 0", "srv/link 777 0 -> text", "srv/owned 640 65532", "srv/text 644 0",
		"tmp/ 1777 0", "usr/ 755 0", "usr/bin/ 755 0", "usr/bin/run 755 0",
	}
	if got := listing(t, &content); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLibrariesOfADynamicProgramAreFound(t *testing.T) {
	asked := newLayer()
	if err := asked.addLibraries("/bin/sh"); err != nil {
		t.Fatal(err)
	}
	for name := range asked.entries {
		if strings.Contains(filepath.Base(name), "libc.so") {
			return
		}
	}
	t.Errorf("no libc among %d entries", len(asked.entries))
}

func TestMistakesAreRefused(t *testing.T) {
	root := sources(t)
	for _, flags := range [][]string{
		{"--file", root + "/absent:/x"}, {"--file", root + "/tree:/x"}, {"--file", root + "/run"}, {"--file", root + "/run:/x:rwx"}, {"--tree", root},
	} {
		layer := newLayer()
		add := map[string]func(string) error{"--file": layer.addFile, "--tree": layer.addTree}[flags[0]]
		if err := add(flags[1]); err == nil {
			t.Errorf("%v was accepted", flags)
		}
	}
}

func listing(t *testing.T, from io.Reader) []string {
	t.Helper()
	var lines []string
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(header))
	}
}

func line(header *tar.Header) string {
	text := fmt.Sprintf("%s %o %d", header.Name, header.Mode, header.Uid)
	if header.Linkname != "" {
		text += " -> " + header.Linkname
	}
	return text
}
