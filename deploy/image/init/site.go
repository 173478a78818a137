//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	program    = "/bin/agentsite"
	configFile = dataFolder + "/agentsite-config/agentsite.yaml"
	notifyAt   = "/run/notify"

	startPatience = 60 * time.Second // until the site says that it is ready
	signPatience  = 30 * time.Second // between its signs of life, from then on
	stopPatience  = 20 * time.Second
	firstPause    = 2 * time.Second // before it is started again; then longer
	longestPause  = time.Minute

	// trialEnds are how often a version on trial may end before it is given up.
	trialEnds = 3
	// provenAfter is how long a site is ready before it is held to be well.
	provenAfter = 15 * time.Second
)

// siteEnv is what systemd would set.
var siteEnv = []string{"STATE_DIRECTORY=" + dataFolder + "/agentsite", "RUNTIME_DIRECTORY=/run/agentsite"}

// runSite keeps the site running. When it has ended, an update that waits is put on the
// card. It returns when the board is to start again, and how.
func runSite(s *slots) (how string) {
	pause := firstPause
	for ends := 1; ; ends++ {
		if s.take() {
			return "0 tryboot"
		}
		handOver()
		prepare()
		begun := time.Now()
		why := oneRun(s.prove)
		safe()
		say("the site has ended: %s", why)
		if s.onTrial() && ends == trialEnds {
			say("this version does not come up; the one before it is started")
			s.giveUp()
			return ""
		}
		if time.Since(begun) > longestPause {
			pause = firstPause
		}
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// oneRun runs the site once, and says why it ended. well is called once it is.
func oneRun(well func()) string {
	notified, stop, err := listenNotify()
	if err != nil {
		return err.Error()
	}
	defer stop()
	group, err := newGroup()
	if err != nil {
		say("what the site leaves behind cannot be ended: %v", err)
	}
	defer group.Close()
	site, err := start(process{
		argv: []string{program, "run", "--config", configFile},
		env:  append([]string{"NOTIFY_SOCKET=" + notifyAt, fmt.Sprintf("WATCHDOG_USEC=%d", signPatience.Microseconds())}, siteEnv...),
		user: siteUser, cgroup: group,
	})
	if err != nil {
		return err.Error()
	}
	why := ""
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	proven := time.NewTimer(time.Hour)
	proven.Stop()
	defer proven.Stop()
	ready := false
	for {
		select {
		case state := <-notified:
			switch {
			case state == "READY=1" && !ready:
				ready = true
				go prepare("--claim") // it says on the boot partition how to claim the site
				proven.Reset(provenAfter)
				patience.Reset(signPatience)
			case state == "WATCHDOG=1" && ready:
				patience.Reset(signPatience)
			}
		case <-proven.C:
			well()
		case <-patience.C:
			why = fmt.Sprintf("it gave no sign of life for %v", signPatience)
			if !ready {
				why = fmt.Sprintf("it was not ready within %v", startPatience)
			}
			site.signal(syscall.SIGKILL)
		case status := <-site.ended:
			switch {
			case why != "":
			case status.Signaled():
				why = status.Signal().String()
			default:
				why = fmt.Sprintf("it ended with %d", status.ExitStatus())
			}
			return why
		}
	}
}

// safe drives to safe what the site left on, however it has ended, and ends what it left
// running.
func safe() {
	run(stopPatience, process{argv: []string{program, "safe"}, env: siteEnv, user: siteUser})
	endGroup()
}

// prepare does as the superuser what the site needs before it starts, such as taking the
// configuration from the boot partition.
func prepare(more ...string) {
	run(time.Minute, process{argv: append([]string{program, "prepare", "--config", configFile, "--boot", bootFolder, "--group", "agentsite"}, more...), env: siteEnv})
}

// run runs a program to its end, for at most that time.
func run(most time.Duration, p process) {
	r, err := start(p)
	if err != nil {
		say("%v", err)
		return
	}
	select {
	case <-r.ended:
	case <-time.After(most):
		say("%s does not end", strings.Join(p.argv, " "))
		r.signal(syscall.SIGKILL)
		<-r.ended
	}
}

// listenNotify passes on what the site says of itself (sd_notify(3)), until stop. What one
// run has said is nothing that the next one says.
func listenNotify() (says <-chan string, stop func(), err error) {
	os.Remove(notifyAt)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notifyAt, Net: "unixgram"})
	if err != nil {
		return nil, nil, err
	}
	if err := os.Chown(notifyAt, siteUser, siteUser); err != nil {
		conn.Close()
		return nil, nil, err
	}
	out, done := make(chan string), make(chan struct{})
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			for line := range strings.SplitSeq(string(buf[:n]), "\n") {
				select {
				case out <- line:
				case <-done:
					return
				}
			}
		}
	}()
	return out, func() { close(done); conn.Close() }, nil
}

// groupFolder is the group of processes that a site and all that it starts are in
// (Documentation/admin-guide/cgroup-v2.rst).
const groupFolder = "/sys/fs/cgroup/agentsite"

func newGroup() (*os.File, error) {
	if err := os.Mkdir(groupFolder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Open(groupFolder)
}

// endGroup ends all that is in the group, and the group: Linux 6.12 also ends whatever is
// started in one that was ended before.
func endGroup() {
	writeFile("1", groupFolder, "cgroup.kill") // what it says, removing the group says too
	var err error
	for range 100 {
		if err = os.Remove(groupFolder); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	say("what the site left behind does not end: %v", err)
}

// handOver gives the site the devices that drivers use.
func handOver() {
	for _, pattern := range []string{"gpiochip*", "i2c-*", "spidev*", "ttyS*", "ttyAMA*", "ttyUSB*", "ttyACM*", "input/event*", "lirc*", "video*", "media*", "dma_heap/*"} {
		all, _ := filepath.Glob("/dev/" + pattern)
		for _, path := range all {
			os.Chown(path, 0, siteUser)
			os.Chmod(path, 0o660)
		}
	}
}
