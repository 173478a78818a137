package state

import (
	"net"
	"os"
	"testing"
)

// TestChoose: the user's own site comes first while it runs, otherwise the service's where
// there ever was one.
func TestChoose(t *testing.T) {
	own, service := Folder(t.TempDir()), Folder(t.TempDir())
	if got := choose(own, service+"/missing"); got != own {
		t.Error("without a service it is", got)
	}
	if got := choose(own, service); got != own {
		t.Error("with a service that never ran it is", got)
	}
	if err := os.WriteFile(service.Path(lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := choose(own, service); got != service {
		t.Error("with a service it is", got)
	}
	ln, err := net.Listen("unix", own.SocketPath(OwnerSocket))
	if err != nil {
		t.Fatal(err)
	}
	if got := choose(own, service); got != own {
		t.Error("while the user's own site runs it is", got)
	}
	ln.Close()
	if got := choose(own, service); got != service {
		t.Error("once that has ended it is", got)
	}
}
