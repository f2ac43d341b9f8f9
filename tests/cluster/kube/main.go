// Command kube is every program of the test cluster that Kubernetes, etcd, Helm and CoreDNS ship, in one binary.
// It becomes the program whose name it is started under, so each has a symbolic link. Linking once, not nine times,
// is most of the difference between a cold build of five minutes and one of twenty.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// program runs to its end and returns the exit code.
type program func() int

func main() {
	name := filepath.Base(os.Args[0])
	run, known := programs[name]
	if !known {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "kube: %q is none of my programs; start me under one of these names: %s\n", name, strings.Join(names, " "))
		os.Exit(2)
	}
	os.Exit(run())
}

// component makes a program of a Kubernetes command. The command is made only when it runs,
// because making one registers flags and metrics that would collide with those of another.
func component(command func() *cobra.Command) program {
	return func() int { return cli.Run(command()) }
}
