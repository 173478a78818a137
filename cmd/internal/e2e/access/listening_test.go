//go:build e2e

package access

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentsite/node/acts"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// listening returns the sockets that a process and its children listen on, from the kernel: "tcp
// 8473", "udp 5353", or the file of a Unix socket (proc_pid_fd(5), proc_pid_net(5)).
func listening(t *testing.T, pid int) (all []string) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", pid)
	open := make(map[string]bool) // inodes
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds { // the guard has pipes only
		if to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name())); err == nil && strings.HasPrefix(to, "socket:[") {
			open[strings.Trim(to, "socket:[]")] = true
		}
	}
	rows := func(table string, each func(columns []string)) {
		text, err := os.ReadFile(filepath.Join(proc, "net", table))
		if err != nil {
			return // no IPv6, say
		}
		for line := range strings.Lines(string(text)) {
			each(strings.Fields(line))
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		rows(table, func(c []string) {
			const listens = "0A"
			if len(c) > 9 && open[c[9]] && (c[3] == listens || strings.HasPrefix(table, "udp")) {
				_, hex, _ := strings.Cut(c[1], ":")
				port, _ := strconv.ParseUint(hex, 16, 16)
				all = append(all, fmt.Sprint(table[:3], " ", port))
			}
		})
	}
	rows("unix", func(c []string) {
		const accepts = 0x10000 // __SO_ACCEPTCON
		if len(c) > 7 && open[c[6]] {
			if flags, _ := strconv.ParseUint(c[3], 16, 32); flags&accepts != 0 {
				all = append(all, c[7])
			}
		}
	})
	children, _ := filepath.Glob(proc + "/task/*/children")
	for _, file := range children {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, listening(t, n)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// socketsOf returns the sockets that carriers report, in the same format.
func socketsOf(carriers []acts.Carrier) (all []string) {
	for _, c := range carriers {
		if u, err := url.Parse(c.Address); err == nil && u.Port() != "" {
			all = append(all, "tcp "+u.Port())
		} else if a, err := multiaddr.NewMultiaddr(c.Address); err == nil && strings.HasPrefix(c.Address, "/ip") {
			network, at, _ := manet.DialArgs(a)
			_, port, _ := net.SplitHostPort(at)
			all = append(all, network[:3]+" "+port)
		} else {
			all = append(all, c.Address)
		}
	}
	slices.Sort(all)
	return all
}
