// Command pause is the container that holds a pod's namespaces: it waits until it is asked to stop.
// It also keeps the client pods of the tests alive, in which commands are then executed.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
