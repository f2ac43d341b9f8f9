// Command opa is the program of the Open Policy Agent project, compiled from its Go module.
package main

import (
	"errors"
	"os"

	"github.com/open-policy-agent/opa/cmd"
)

func main() {
	err := cmd.RootCommand.Execute()
	if exit, coded := errors.AsType[*cmd.ExitError](err); coded {
		os.Exit(exit.Exit)
	}
	if err != nil {
		os.Exit(1)
	}
}
