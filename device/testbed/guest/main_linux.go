// Guest is the init process of an emulated board. It adds chips and lines to a machine that
// QEMU emulates, runs the site on it, and serves a control interface over HTTP. The tests
// and their expectations are outside.
//
// The kernel's command line has port=, the port of the site, and control=, the port of the
// guest. With root= it starts the system on that disk, in which the site is a service, and
// keeps running beside it. An SD-card image runs it in place of its DHCP client.
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
	switch {
	case os.Getpid() == 1:
		run = initProcess
	case len(os.Args) > 1:
		run = replaceDHCP
	}
	if err := run(); err != nil {
		fmt.Println("guest:", err)
		os.Exit(1)
	}
}

// initProcess runs as process 1: it starts the control process, reaps orphans, and stops the
// machine when the control process exits.
func initProcess() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"debugfs", "/sys/kernel/debug"}} {
		if err := mount(m[0], m[1]); err != nil {
			return err
		}
	}
	if err := setUpBoard(); err != nil {
		return err
	}
	if disk, err := parameter("root"); err == nil {
		return switchRoot(disk)
	}
	cmd, err := startControl()
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

// setUpBoard loads kernel modules and adds lines and the network.
func setUpBoard() error {
	if err := loadModules("/modules"); err != nil {
		return err
	}
	if err := addLines(); err != nil {
		return err
	}
	return network()
}

// startControl starts this program again, as the control process.
func startControl() (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd, cmd.Start()
}

// switchRoot starts the control process and replaces this one by the init of the system on
// a disk.
func switchRoot(disk string) error {
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
	if _, err := startControl(); err != nil {
		return err
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=/usr/sbin:/usr/bin"})
}

// replaceDHCP adds the network and serves the control interface, on a system that has
// booted by itself.
func replaceDHCP() error {
	if err := mount("debugfs", "/sys/kernel/debug"); err != nil && !errors.Is(err, unix.EBUSY) {
		return err
	}
	if err := network(); err != nil {
		return err
	}
	return control()
}

// control serves the control interface.
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
	return serve(control, newEmulator(port))
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

// parameter returns a parameter of the kernel's command line.
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
