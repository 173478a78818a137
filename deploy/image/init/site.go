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
	rewriteAt  = "/run/agentsite-config.sock"   // the site has its configuration written there
	powerOffAt = "/run/agentsite-poweroff.sock" // and the machine powered off, if that says so

	startTimeout    = 60 * time.Second // until READY=1
	watchdogTimeout = 30 * time.Second // between WATCHDOG=1, after READY=1
	safeTimeout     = 20 * time.Second
	minBackoff      = 2 * time.Second // before a restart
	maxBackoff      = time.Minute

	// maxTrialExits is the number of exits after which a version on trial is rejected.
	maxTrialExits = 3
	// healthyAfter is the time after READY=1 at which a site counts as healthy.
	healthyAfter = 15 * time.Second
)

// siteEnv lists the variables that systemd would set.
var siteEnv = []string{"STATE_DIRECTORY=" + dataFolder + "/agentsite", "RUNTIME_DIRECTORY=/run/agentsite"}

// superviseSite runs the site, and restarts it with a back-off. Between two runs it installs
// a waiting update. It returns, with the argument of reboot, when the board has to reboot, and with powerOff after the
// site has ended because off was closed.
func superviseSite(s *slots, off <-chan struct{}) (argument string) {
	backoff := minBackoff
	for exits := 1; ; exits++ {
		if s.installWaiting() {
			return "0 tryboot"
		}
		chownDevices()
		prepare()
		started := time.Now()
		why := runSite(s.confirm, off)
		makeSafe()
		logf("the site has exited: %s", why)
		select {
		case <-off:
			return powerOff
		default:
		}
		if s.onTrial() && exits == maxTrialExits {
			logf("%s does not start; starting the previous version", version)
			s.reject()
			return ""
		}
		if time.Since(started) > maxBackoff {
			backoff = minBackoff
		}
		time.Sleep(backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

// runSite runs the site once, and returns the reason for its exit. It calls healthy once the
// site is healthy, and ends it when off is closed.
func runSite(healthy func(), off <-chan struct{}) string {
	notified, stop, err := listenNotify()
	if err != nil {
		return err.Error()
	}
	defer stop()
	group, err := newGroup()
	if err != nil {
		logf("processes that the site leaves behind cannot be killed: %v", err)
	}
	defer group.Close()
	site, err := start(process{
		argv: []string{program, "run", "--config", configFile},
		env:  append([]string{"NOTIFY_SOCKET=" + notifyAt, fmt.Sprintf("WATCHDOG_USEC=%d", watchdogTimeout.Microseconds())}, siteEnv...),
		user: siteUser, cgroup: group,
	})
	if err != nil {
		return err.Error()
	}
	why := ""
	watchdog := time.NewTimer(startTimeout)
	defer watchdog.Stop()
	confirm := time.NewTimer(time.Hour)
	confirm.Stop()
	defer confirm.Stop()
	ready := false
	for {
		select {
		case state := <-notified:
			switch {
			case state == "READY=1" && !ready:
				ready = true
				go prepare("--claim") // writes on the boot partition how to claim the site
				confirm.Reset(healthyAfter)
				watchdog.Reset(watchdogTimeout)
			case state == "WATCHDOG=1" && ready && off != nil:
				watchdog.Reset(watchdogTimeout)
			}
		case <-confirm.C:
			healthy()
		case <-off: // the site brings its outputs to safe, and closes its files
			off, ready = nil, true
			site.signal(syscall.SIGTERM)
			watchdog.Reset(safeTimeout)
		case <-watchdog.C:
			why = fmt.Sprintf("no WATCHDOG=1 for %v", watchdogTimeout)
			if !ready {
				why = fmt.Sprintf("not ready after %v", startTimeout)
			}
			site.signal(syscall.SIGKILL)
		case status := <-site.ended:
			switch {
			case why != "":
			case status.Signaled():
				why = status.Signal().String()
			default:
				why = fmt.Sprintf("exit status %d", status.ExitStatus())
			}
			return why
		}
	}
}

// makeSafe drives all outputs to safe, and kills the processes that the site left running.
func makeSafe() {
	run(safeTimeout, process{argv: []string{program, "safe"}, env: siteEnv, user: siteUser})
	killGroup()
}

// prepare runs agentsite prepare as root, which for example copies the configuration from
// the boot partition.
func prepare(more ...string) {
	run(time.Minute, process{argv: append([]string{program, "prepare", "--config", configFile, "--boot", bootFolder, "--group", "agentsite"}, more...), env: siteEnv})
}

// serveRewrites runs agentsite prepare as root for each request of the site to have its configuration written,
// as the package's agentsite-config.socket does. It returns where it cannot.
func serveRewrites() {
	err := serveSite(rewriteAt, func(f *os.File) {
		run(safeTimeout, process{
			argv: []string{program, "prepare", "--rewrite", "--config", configFile}, env: siteEnv, in: f, out: f,
		})
	})
	logf("owners cannot change the configuration over the network: %v", err)
}

// servePowerOff calls end for a request of the site to have the machine powered off, where agentsite prepare as root
// says that it may, as the package's agentsite-poweroff.socket does. It returns where it cannot.
func servePowerOff(end func()) {
	err := serveSite(powerOffAt, func(f *os.File) {
		if run(safeTimeout, process{
			argv: []string{program, "prepare", "--poweroff", "--config", configFile}, env: siteEnv, in: f, out: f,
		}) {
			end()
		}
	})
	logf("the site cannot have the machine powered off: %v", err)
}

// serveSite calls answer for each connection of the site to a socket, one at a time. It returns where it cannot.
func serveSite(at string, answer func(*os.File)) error {
	os.Remove(at)
	requests, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err == nil {
		err = errors.Join(os.Chmod(at, 0o600), os.Chown(at, siteUser, siteUser))
	}
	for err == nil {
		var conn *net.UnixConn
		if conn, err = requests.AcceptUnix(); err != nil {
			break
		}
		if f, fileErr := conn.File(); fileErr == nil {
			answer(f)
			f.Close()
		}
		conn.Close()
	}
	return err
}

// run runs a program until it exits, and kills it after the timeout. It reports whether it succeeded.
func run(timeout time.Duration, p process) bool {
	r, err := start(p)
	if err != nil {
		logf("%v", err)
		return false
	}
	select {
	case status := <-r.ended:
		return status.Exited() && status.ExitStatus() == 0
	case <-time.After(timeout):
		logf("%s does not exit", strings.Join(p.argv, " "))
		r.signal(syscall.SIGKILL)
		<-r.ended
		return false
	}
}

// listenNotify receives the site's messages of sd_notify(3) until stop. Each run of the site
// has its own socket, so that it gets no message of an earlier run.
func listenNotify() (states <-chan string, stop func(), err error) {
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

// groupFolder is the control group of the site and its child processes
// (Documentation/admin-guide/cgroup-v2.rst).
const groupFolder = "/sys/fs/cgroup/agentsite"

func newGroup() (*os.File, error) {
	if err := os.Mkdir(groupFolder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Open(groupFolder)
}

// killGroup kills all processes in the group, and removes the group, because Linux 6.12 also
// kills processes that start later in a killed group.
func killGroup() {
	writeFile("1", groupFolder, "cgroup.kill") // removing the group reports the same error
	var err error
	for range 100 {
		if err = os.Remove(groupFolder); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	logf("processes that the site left behind do not exit: %v", err)
}

// chownDevices gives the site's group access to the devices that drivers use.
func chownDevices() {
	for _, pattern := range []string{"gpiochip*", "i2c-*", "spidev*", "ttyS*", "ttyAMA*", "ttyUSB*", "ttyACM*", "input/event*", "lirc*", "video*", "media*", "dma_heap/*"} {
		all, _ := filepath.Glob("/dev/" + pattern)
		for _, path := range all {
			os.Chown(path, 0, siteUser)
			os.Chmod(path, 0o660)
		}
	}
}
