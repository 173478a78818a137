package devices

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // a message wakes one thread, and takes less memory
	conn, err := connectChild(cmd)
	if err != nil {
		return proc.Process{}, err
	}
	if err := proc.StartRealtime(cmd.Start); err != nil { // it closes the pipes
		return proc.Process{}, fmt.Errorf("the guard's process cannot be started: %w", err)
	}
	return proc.Process{Pid: cmd.Process.Pid, Conn: conn, Kill: func() { cmd.Process.Kill() }, Wait: func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("the guard's process ended with %w", err)
		}
		return nil
	}}, nil
}

// pipes are one end of the connection between the site and the guard. A socket would wake
// the sender once more when the other has read.
type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

// connectChild connects to the command's input and output.
func connectChild(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	return pipes{out, in}, err
}

// GuardConn returns the guard's end of the connection to the site.
func GuardConn() (io.ReadWriteCloser, error) {
	in, err := openInherited(os.Stdin)
	if err != nil {
		return nil, err
	}
	out, err := openInherited(os.Stdout)
	return pipes{in, out}, err
}
