// Guest is the first program of an emulated board. It makes the machine that QEMU
// emulates into a board with chips and lines, runs the site on it, and does what it
// is told over HTTP from outside. What is to be tested, and what is right, it does
// not know.
//
// The kernel's command line has port=, where the site is heard, and control=, where
// the guest is. With root= it starts the system on that disk beside itself, in which
// the site is a service.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	run := control
	if os.Getpid() == 1 {
		run = first
	}
	if err := run(); err != nil {
		fmt.Println("guest:", err)
		os.Exit(1)
	}
}

// first is process 1: it waits for whatever ends, so that nobody else's orphans
// disturb the guest, and ends the machine with it.
func first() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"debugfs", "/sys/kernel/debug"}} {
		if err := mount(m[0], m[1]); err != nil {
			return err
		}
	}
	if err := board(); err != nil {
		return err
	}
	if disk, err := parameter("root"); err == nil {
		return system(disk)
	}
	cmd, err := beside()
	if err != nil {
		return err
	}
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if pid == cmd.Process.Pid {
			return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // QEMU ends
		}
	}
}

// board makes the machine a board.
func board() error {
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := addLines(); err != nil {
		return err
	}
	return network()
}

// beside starts the guest in a process of its own.
func beside() (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd, cmd.Start()
}

// system gives the machine to the system on a disk, and the guest stays beside it.
func system(disk string) error {
	const root = "/system"
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(disk, root, "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", disk, err)
	}
	for _, folder := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Mount(folder, root+folder, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", folder, err)
		}
	}
	for _, err := range []error{os.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/")} {
		if err != nil {
			return err
		}
	}
	if _, err := beside(); err != nil {
		return err
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=/usr/sbin:/usr/bin"})
}

// control does what it is told.
func control() error {
	port, err := parameter("port")
	if err != nil {
		return err
	}
	control, err := parameter("control")
	if err != nil {
		return err
	}
	go forward(port)
	return serve(control, newBench(port))
}

func mount(kind, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(kind, folder, kind, 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", folder, err)
	}
	return nil
}

// parameter is one of the kernel's command line.
func parameter(name string) (string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return "", err
	}
	for _, word := range strings.Fields(string(line)) {
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("the kernel's command line has no %s=", name)
}
