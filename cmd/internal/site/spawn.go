package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"agentsite/device/guard/proc"
	"agentsite/node/state"
)

// ownCommand is this program, to do something else with the folder. On Linux it is the
// same program even where an update has put another in its place.
func ownCommand(ctx context.Context, f state.Folder, word string) *exec.Cmd {
	program := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		if found, err := os.Executable(); err == nil {
			program = found
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{os.Args[0], word, "--data", string(f)}
	return cmd
}

// spawnGuard starts the folder's guard.
func spawnGuard(f state.Folder) (proc.Process, error) {
	cmd := ownCommand(context.Background(), f, "guard")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, apart()
	conn, err := connect(cmd)
	if err != nil {
		return proc.Process{}, err
	}
	err = proc.StartRealtime(cmd.Start)
	closeChilds(cmd)
	if err != nil {
		conn.Close()
		return proc.Process{}, fmt.Errorf("the guard's process cannot be started: %w", err)
	}
	return proc.Process{Pid: cmd.Process.Pid, Conn: conn, Kill: func() { cmd.Process.Kill() }, Wait: func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the guard's process ended with %w", err)
		}
		return nil
	}}, nil
}
