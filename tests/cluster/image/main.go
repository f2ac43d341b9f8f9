// Command image makes an OCI image archive out of files on this machine, without a container engine:
//
//	image --name cotter.test/demo:1 --out demo.tar --file target/demo:/usr/local/bin/demo --entrypoint /usr/local/bin/demo
//
// The same files give the same bytes: entries are sorted, and times and owners do not come from the machine.
// What it prints is each name and the manifest's digest, by which `ctr images import` then knows the image.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	request, err := parse(arguments)
	if err != nil {
		return err
	}
	digest, err := writeArchive(request)
	if err != nil {
		return fmt.Errorf("failed to make %s: %w", request.out, err)
	}
	for _, name := range request.names {
		fmt.Println(name, digest)
	}
	return nil
}

// request is what the command line asks for.
type request struct {
	names  []string
	out    string
	layers []*layer
	config runConfig
}

// parse reads the flags in order, because --file, --tree, --libs and --dir add to the layer that the last --layer began.
func parse(arguments []string) (*request, error) {
	asked := &request{layers: []*layer{newLayer()}}
	top := func() *layer { return asked.layers[len(asked.layers)-1] }
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	flags.Func("name", "image `NAME:TAG`, with its registry; repeat it for more names", appendTo(&asked.names))
	flags.StringVar(&asked.out, "out", "", "archive `FILE` to write")
	flags.StringVar(&asked.config.User, "user", "65532:65532", "`UID:GID` to run as")
	flags.StringVar(&asked.config.WorkingDir, "workdir", "/", "working `DIRECTORY`")
	flags.Func("entrypoint", "one `ARGUMENT` of the entry point; repeat it", appendTo(&asked.config.Entrypoint))
	flags.Func("cmd", "one default `ARGUMENT`; repeat it", appendTo(&asked.config.Cmd))
	flags.Func("env", "one `NAME=VALUE`; repeat it", appendTo(&asked.config.Env))
	flags.BoolFunc("layer", "begin a new layer", func(string) error {
		asked.layers = append(asked.layers, newLayer())
		return nil
	})
	flags.Func("file", "`SOURCE:TARGET[:MODE[:UID]]`: one file", func(text string) error { return top().addFile(text) })
	flags.Func("tree", "`SOURCE:TARGET`: a directory with everything in it", func(text string) error { return top().addTree(text) })
	flags.Func("libs", "`PROGRAM`: the libraries that ldd names for it", func(program string) error { return top().addLibraries(program) })
	flags.Func("dir", "`TARGET[:MODE[:UID]]`: an empty directory", func(text string) error { return top().addDirectory(text) })
	flags.Func("link", "`TARGET:POINTS-TO`: a symbolic link", func(text string) error { return top().addLink(text) })
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(asked.names) == 0 || asked.out == "" || flags.NArg() > 0 {
		return nil, fmt.Errorf("--name and --out are needed and nothing beside flags (got %q); see --help", flags.Args())
	}
	return asked, nil
}

func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}
