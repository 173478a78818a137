//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"agentsite/node/update"

	"golang.org/x/sys/unix"
)

const (
	dataFolder = "/var/lib" // the data partition
	bootFolder = "/boot"    // the FAT partition
	siteUser   = 1000       // user and group of the site

	// trialTimeout is the time after the start of the system in which a version on trial
	// must become healthy.
	trialTimeout = 90 * time.Second
)

// boot starts the system and never returns: at its end it reboots.
func boot() {
	started := time.Now()
	argument := "" // of the reboot
	defer func() { reboot(argument) }()
	mountKernelFolders()
	openConsoles()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	go reapChildren()
	logf("agentsite image %s", version)
	feedWatchdog("/dev/watchdog")
	setMinimumTime()
	coldplug()

	// The guard's process needs real-time priority and locked memory.
	unix.Setrlimit(unix.RLIMIT_RTPRIO, &unix.Rlimit{Cur: 10, Max: 10})
	unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	os.Mkdir("/run/agentsite", 0o755)
	os.Chown("/run/agentsite", siteUser, siteUser)

	card, err := findCard(30 * time.Second)
	if err == nil {
		err = card.open()
	}
	if err != nil {
		logf("the card cannot be used: %v", err)
		time.Sleep(30 * time.Second)
		return
	}
	slots, err := openSlots(card)
	if err != nil {
		logf("%v", err)
	}
	slots.endTrial()
	if slots.onTrial() {
		logf("%s is on trial", version)
		time.AfterFunc(time.Until(started.Add(trialTimeout)), func() {
			if slots.onTrial() {
				logf("%s is not healthy after %v; starting the previous version", version, trialTimeout)
				writeFile("1", groupFolder, "cgroup.kill")
				makeSafe()
				slots.reject()
				reboot("")
			}
		})
	}
	startNetworks()
	go showSite()
	go serveRewrites()
	off := make(chan struct{})
	go servePowerOff(sync.OnceFunc(func() { close(off) }))
	if argument = superviseSite(slots, off); argument == powerOff {
		logf("the machine is powered off")
		endSystem(unix.LINUX_REBOOT_CMD_POWER_OFF, "")
	}
}

// openSlots reads the state of the versions on the card.
func openSlots(c card) (*slots, error) {
	rules, err := update.NewRules(target, sequence, releaseKeys)
	if err != nil {
		err = fmt.Errorf("updates are disabled: %w", err)
	}
	s := &slots{boot: bootFolder, folder: dataFolder + "/agentsite-update", open: c.openSlot, rules: rules}
	return s, errors.Join(err, s.read())
}

// mountKernelFolders mounts the kernel's file systems and the ones in memory.
func mountKernelFolders() {
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
			logf("%s is not mounted: %v", m.at, err)
		}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		logf("the root file system is writable: %v", err)
	}
}

// powerOff is returned by superviseSite, in place of an argument of reboot, where the machine is to be powered off.
const powerOff = "power off"

// reboot syncs the card and reboots. The argument is for the board's firmware: "0 tryboot"
// boots the other slot, once.
func reboot(argument string) { endSystem(unix.LINUX_REBOOT_CMD_RESTART2, argument) }

// endSystem syncs the card and calls reboot(2).
func endSystem(command uintptr, argument string) {
	for _, at := range []string{bootFolder, dataFolder} {
		syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	syscall.Sync()
	for {
		text := append([]byte(argument), 0)
		_, _, err := unix.Syscall6(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2,
			command, uintptr(unsafe.Pointer(&text[0])), 0, 0)
		logf("the system does not end: %v", err)
		time.Sleep(10 * time.Second)
	}
}

// setMinimumTime sets a clock that is before the image's build time to that time, so that
// the image's files are not in the future.
func setMinimumTime() {
	info, err := os.Stat("/etc/made")
	if err == nil && time.Now().Before(info.ModTime()) {
		tv := syscall.NsecToTimeval(info.ModTime().UnixNano())
		err = syscall.Settimeofday(&tv)
	}
	if err != nil {
		logf("the clock is not set: %v", err)
	}
}

// writeFile writes to an existing file, such as one of the kernel's.
func writeFile(text string, path ...string) error {
	f, err := os.OpenFile(filepath.Join(path...), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
