package update

import (
	"context"
	"os"
	"time"
)

const (
	// Folder has the package's updates; PackageProgram is the package's program, and ProgramLink
	// points to the program in use.
	Folder         = "/var/lib/agentsite-update"
	PackageProgram = "/usr/lib/agentsite/agentsite"
	ProgramLink    = "/usr/bin/agentsite"

	// proofTime is how long a program runs before it proves itself. The units give it 65 s to start
	// before that, so that a failing program is replaced within 90 s.
	proofTime = 15 * time.Second
)

// ProveRunning calls Prove for the running program, where it is an update, after proofTime if
// alive returns nil. It blocks until then or until ctx ends, and returns nil at once in a
// program that is no update.
func ProveRunning(ctx context.Context, alive func(context.Context) error) error {
	path, err := os.Executable()
	programs, sequence := ProgramsOf(path)
	if err != nil || sequence == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(proofTime):
	}
	if err := alive(ctx); err != nil {
		return err
	}
	return programs.Prove(sequence)
}

// RunningProgram returns the path of the running program. For the package's and for an update
// it is ProgramLink, which stays right after an update.
func RunningProgram() string {
	path, err := os.Executable()
	if err != nil {
		return "agentsite"
	}
	if _, sequence := ProgramsOf(path); sequence > 0 || path == PackageProgram {
		return ProgramLink
	}
	return path
}
