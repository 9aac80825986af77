// Command etcd is the key-value store behind the test control plane: the
// upstream server as its own main package starts it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
