//go:build linux

package main

import (
	"context"
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
	configFile = bootFolder + "/agentsite.yaml"
	notifyAt   = "/run/notify"

	startPatience = 60 * time.Second // until the site says that it is ready
	signPatience  = 30 * time.Second // between its signs of life, from then on
	stopPatience  = 20 * time.Second
	firstPause    = 2 * time.Second // before it is started again; then longer
	longestPause  = time.Minute

	// provenAfter is how long a site is ready before it is held to be well.
	provenAfter = 15 * time.Second
)

// runSite keeps the site running, and puts an update in use that waits when it has ended.
// It returns when the board is to start again.
func runSite(s *slots) {
	notified, err := listenNotify()
	if err != nil {
		say("no signs of life are heard: %v", err)
		return
	}
	group, err := makeGroup()
	if err != nil {
		say("what a site leaves behind cannot be ended: %v", err)
	}
	pause := firstPause
	for {
		if s.take() {
			return
		}
		handOver()
		run(time.Minute, program, "prepare", "--config", configFile)
		begun := time.Now()
		why := oneRun(notified, group, s.prove)
		safe(group)
		say("the site has ended: %s", why)
		if pause = min(2*pause, longestPause); time.Since(begun) > longestPause {
			pause = firstPause
		}
		time.Sleep(pause)
	}
}

// oneRun runs the site once, and says why it ended. well is called once it is.
func oneRun(notified <-chan string, group *os.File, well func()) string {
	site, err := start(process{
		argv: []string{program, "run", "--config", configFile},
		env: []string{
			"NOTIFY_SOCKET=" + notifyAt, fmt.Sprintf("WATCHDOG_USEC=%d", signPatience.Microseconds()),
			"STATE_DIRECTORY=" + dataFolder + "/agentsite", "RUNTIME_DIRECTORY=/run/agentsite", "GOMEMLIMIT=160MiB",
		},
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
	run(stopPatience, program, "safe")
	if group != nil {
		writeFile("1", group.Name(), "cgroup.kill")
	}
}

// run runs a program, for at most that time. prepare is the superuser's; the rest is not.
func run(most time.Duration, argv ...string) {
	p := process{argv: argv}
	if argv[1] != "prepare" {
		p.user = siteUser
		p.env = []string{"STATE_DIRECTORY=" + dataFolder + "/agentsite", "RUNTIME_DIRECTORY=/run/agentsite"}
	}
	r, err := start(p)
	if err != nil {
		say("%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	select {
	case <-r.ended:
	case <-ctx.Done():
		say("%s does not end", strings.Join(argv, " "))
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
