//go:build linux

package main

import (
	"fmt"
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
var siteEnv = []string{"STATE_DIRECTORY=" + dataFolder + "/agentsite", "RUNTIME_DIRECTORY=/run/agentsite", "GOMEMLIMIT=160MiB"}

// runSite keeps the site running. When it has ended, an update that waits is put on the
// card. It returns when the board is to start again, and how.
func runSite(s *slots) (how string) {
	notified, err := listenNotify()
	if err != nil {
		say("no signs of life are heard: %v", err)
		return ""
	}
	group, err := makeGroup()
	if err != nil {
		say("what a site leaves behind cannot be ended: %v", err)
	}
	pause := firstPause
	for ends := 1; ; ends++ {
		if s.take() {
			return "0 tryboot"
		}
		handOver()
		prepare()
		begun := time.Now()
		why := oneRun(notified, group, s.prove)
		safe(group)
		say("the site has ended: %s", why)
		if s.onTrial() && ends == trialEnds {
			say("this version does not come up; the one before it is started")
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
func oneRun(notified <-chan string, group *os.File, well func()) string {
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
func safe(group *os.File) {
	run(stopPatience, process{argv: []string{program, "safe"}, env: siteEnv, user: siteUser})
	if group != nil {
		writeFile("1", group.Name(), "cgroup.kill")
	}
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

// listenNotify passes on what the site says of itself (sd_notify(3)).
func listenNotify() (<-chan string, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notifyAt, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	if err := os.Chown(notifyAt, siteUser, siteUser); err != nil {
		return nil, err
	}
	out := make(chan string)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				continue
			}
			for line := range strings.SplitSeq(string(buf[:n]), "\n") {
				out <- line
			}
		}
	}()
	return out, nil
}

// makeGroup makes the group of processes that a site and all that it starts are in.
func makeGroup() (*os.File, error) {
	const path = "/sys/fs/cgroup/agentsite"
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	return os.Open(path)
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
