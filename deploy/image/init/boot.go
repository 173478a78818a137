//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"agentsite/node/update"

	"golang.org/x/sys/unix"
)

const (
	dataFolder = "/var/lib" // the data partition
	bootFolder = "/boot"    // the partition that every computer can read
	siteUser   = 1000       // and group: the one that the site runs as

	// provenWithin is since the start of the system. Whoever is on trial and not well by then
	// has failed.
	provenWithin = 90 * time.Second
)

// boot brings the system up and never returns: at its end the board starts again.
func boot() {
	begun := time.Now()
	how := "" // to restart
	defer func() { restart(how) }()
	kernelFolders()
	openConsoles()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	go bury()
	say("agentsite's image %s", version)
	feedWatchdog("/dev/watchdog")
	setFloor()
	coldplug()

	// The process that drives the outputs runs before all that is not urgent, and stays in
	// memory.
	unix.Setrlimit(unix.RLIMIT_RTPRIO, &unix.Rlimit{Cur: 10, Max: 10})
	unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	os.Mkdir("/run/agentsite", 0o755)
	os.Chown("/run/agentsite", siteUser, siteUser)

	card, err := findCard(30 * time.Second)
	if err == nil {
		err = card.open()
	}
	if err != nil {
		say("the card cannot be used: %v", err)
		time.Sleep(30 * time.Second)
		return
	}
	slots, err := openSlots(card)
	if err != nil {
		say("%v", err)
	}
	slots.settle()
	if slots.onTrial() {
		say("this version, %s, is on trial", version)
		time.AfterFunc(time.Until(begun.Add(provenWithin)), func() {
			if slots.onTrial() {
				say("%s is not well within %v; the one before it is started", version, provenWithin)
				writeFile("1", groupFolder, "cgroup.kill")
				safe()
				slots.giveUp()
				restart("")
			}
		})
	}
	networks()
	go showSite()
	how = runSite(slots)
}

// openSlots finds the versions on the card.
func openSlots(c card) (*slots, error) {
	rules, err := update.NewRules(target, sequence, releaseKeys)
	if err != nil {
		err = fmt.Errorf("no updates are taken: %w", err)
	}
	s := &slots{boot: bootFolder, folder: dataFolder + "/agentsite-update", open: c.openSlot, rules: rules}
	return s, errors.Join(err, s.read())
}

// kernelFolders mounts what the kernel shows of itself, and folders in memory.
func kernelFolders() {
	for _, m := range []struct {
		kind, at, options string
		flags             uintptr
	}{
		{"proc", "/proc", "", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"sysfs", "/sys", "", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"devtmpfs", "/dev", "mode=0755", syscall.MS_NOSUID | syscall.MS_NOEXEC},
		{"tmpfs", "/run", "mode=0755,size=4m", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"tmpfs", "/tmp", "mode=1777,size=16m", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
		{"cgroup2", "/sys/fs/cgroup", "", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC},
	} {
		if err := syscall.Mount(m.kind, m.at, m.kind, m.flags, m.options); err != nil && err != syscall.EBUSY {
			say("%s is not there: %v", m.at, err)
		}
	}
	// All else is as the image has it.
	if err := syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		say("the root can be written to: %v", err)
	}
}

// restart starts the board again, with all that was written on the card. how is for the
// board's firmware: "0 tryboot" starts the other version, once.
func restart(how string) {
	for _, at := range []string{bootFolder, dataFolder} {
		syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	syscall.Sync()
	for {
		text := append([]byte(how), 0)
		_, _, err := unix.Syscall6(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2,
			unix.LINUX_REBOOT_CMD_RESTART2, uintptr(unsafe.Pointer(&text[0])), 0, 0)
		say("the board does not start again: %v", err)
		time.Sleep(10 * time.Second)
	}
}

// setFloor sets a clock that stands before the image was made to that time, so that what
// the image brings is not of the future.
func setFloor() {
	info, err := os.Stat("/etc/made")
	if err == nil && time.Now().Before(info.ModTime()) {
		tv := syscall.NsecToTimeval(info.ModTime().UnixNano())
		err = syscall.Settimeofday(&tv)
	}
	if err != nil {
		say("the clock is not set: %v", err)
	}
}

// writeFile is for what the kernel shows as files.
func writeFile(text string, path ...string) error {
	f, err := os.OpenFile(filepath.Join(path...), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
