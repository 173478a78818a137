//go:build e2e && linux

package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"agentsite/discovery/bed"
)

// PublicRelay is agentsite relay on a host with a public address.
type PublicRelay struct {
	Host, IP, Folder string
	Flags            []string // further ones of its command line
	Addresses        []string // its addresses, with its peer ID
	Cmd              *exec.Cmd
}

// Start runs the relay and waits until it prints its addresses.
func (p *PublicRelay) Start(t testing.TB) {
	t.Helper()
	argv := bed.On(p.Host, append([]string{Program, "relay", "--json", "--data", p.Folder, "--listen", ":8475"}, p.Flags...)...)
	p.Cmd = exec.Command(argv[0], argv[1:]...)
	p.Cmd.Stderr = os.Stderr
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	var said struct{ Addresses []string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatal("the relay does not say where it is:", err)
	}
	p.Addresses = said.Addresses
}

// Kill ends the relay as kill -9 does.
func (p *PublicRelay) Kill() {
	if p.Cmd == nil {
		return
	}
	_ = p.Cmd.Process.Kill()
	_ = p.Cmd.Wait()
	p.Cmd = nil
}
