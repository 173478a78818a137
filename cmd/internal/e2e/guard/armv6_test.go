//go:build e2e && linux

package guard

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
)

// TestGuardARMv6: the guard of the ARMv6 program, which an emulated site could not start by itself,
// obeys its keeper, and drives outputs to safe at the end of the connection.
func TestGuardARMv6(t *testing.T) {
	arm := harness.Need(t, "the ARMv6 program", harness.ARMv6Program)
	config, witness := harness.RelayConfig(t)
	dir := harness.TempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "outputs.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	latch := guard.Latch{File: filepath.Join(dir, "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	log := &harness.LogBuffer{}
	begin := func() (proc.Process, error) {
		ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return proc.Process{}, err
		}
		ours, its := os.NewFile(uintptr(ends[0]), "guard"), os.NewFile(uintptr(ends[1]), "guard")
		defer ours.Close()
		defer its.Close()
		cmd := exec.Command("qemu-arm-static", arm, "guard", "--data", dir)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = its, its, log
		if err := cmd.Start(); err != nil {
			return proc.Process{}, err
		}
		conn, err := net.FileConn(ours)
		return proc.Process{Pid: cmd.Process.Pid, Conn: conn, Kill: func() { cmd.Process.Kill() }, Wait: cmd.Wait}, err
	}
	policy := guard.NewPolicy("box", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
	keeper := proc.NewKeeper([]guard.Policy{policy}, latch, begin)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Run(ctx) }()
	settling, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	if err := keeper.Settle(settling); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	shows := func() string { value, _ := harness.ReadWitness(witness); return value }
	for range 3 {
		begun := time.Now()
		s, err := keeper.Move(t.Context(), "ann", "box/relay", device.Bool(true), time.Second)
		if err != nil || shows() != "on" {
			t.Fatalf("%+v %v, and the relay is %s\n%s", s, err, shows(), log)
		}
		harness.WaitFor(t, 5*time.Second, "the lease is over", func() bool { return shows() == "off" })
		t.Logf("a lease of 1 s took %v", time.Since(begun).Round(time.Millisecond))
	}
	if _, err := keeper.Move(t.Context(), "ann", "box/relay", device.Bool(true), time.Minute); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	cancel()
	if err := <-ended; err != nil || shows() != "off" {
		t.Errorf("%v, and the relay is %s\n%s", err, shows(), log)
	}
	t.Logf("the end of the connection to the end of the process: %v", time.Since(begun).Round(time.Millisecond))
}
