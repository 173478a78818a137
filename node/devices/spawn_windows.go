package devices

import (
	"os"
	"syscall"
)

// CloseOnExec has nothing to do: a child inherits only handles that it is given.
func CloseOnExec() {}

// ownProcessGroup keeps a terminal's Ctrl-C from the guard, which ends after the site.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func openInherited(f *os.File) (*os.File, error) { return f, nil }
