package devices

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"agentsite/device/guard/proc"
)

// command is this program with another sub-command for the same folder. On Linux it is the
// same program even after an update has replaced its file.
func (f GuardFiles) command(ctx context.Context, word string) *exec.Cmd {
	program := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		if found, err := os.Executable(); err == nil {
			program = found
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{os.Args[0], word, "--data", f.Folder}
	return cmd
}

// NewKeeper makes the site's side of the guard's process. Its Run starts that process, after
// TakeOver has written the same plan.
func (f GuardFiles) NewKeeper(p Plan) *proc.Keeper {
	return proc.NewKeeper(p.policies, f.Latch, f.startGuard)
}

// startGuard starts the guard's process.
func (f GuardFiles) startGuard() (proc.Process, error) {
	cmd := f.command(context.Background(), "guard")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, ownProcessGroup()
	conn, err := connectChild(cmd)
	if err != nil {
		return proc.Process{}, err
	}
	err = proc.StartRealtime(cmd.Start)
	closeChildEnds(cmd)
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
