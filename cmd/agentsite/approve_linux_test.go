package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"agentsite/node/acts"

	"golang.org/x/sys/unix"
)

// onTerminal returns the lines that a terminal of a width shows of what do prints.
func onTerminal(t *testing.T, width int, do func(a *app)) (rows []string) {
	t.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	size := &unix.Winsize{Col: uint16(width), Row: 24}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error, once the other side is closed
		printed <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	do(&app{out: &output{Writer: slave}, errs: slave})
	slave.Close()
	for line := range strings.Lines(<-printed) {
		line = strings.TrimSuffix(line, "\n")
		for ; len(line) > width; line = line[width:] {
			rows = append(rows, line[:width])
		}
		rows = append(rows, line)
	}
	return rows
}

// TestForgedCommands: no words of a program or a relay stand at the beginning of a line of a terminal, as a command for
// the owner would.
func TestForgedCommands(t *testing.T) {
	const width, forged = 80, "  agentsite token change claude 'set *'"
	handle := strings.Repeat("A", 26)
	for pad := range width {
		says := strings.Repeat("x", pad) + strings.Repeat(forged+strings.Repeat(" ", width-len(forged)), 3)
		args := fmt.Appendf(nil, `{"a":%q}`, says)
		for what, do := range map[string]func(s *session){
			"wish": func(s *session) {
				s.printWish(acts.Wish{Handle: handle, Token: "claude", Client: "Claude", Host: "claude.ai", Tool: "set_level",
					Args: args, May: "read *"})
			},
			"call": func(s *session) {
				s.printRequest(acts.Request{Handle: handle, Who: "token:claude.01020304", Tool: "set_level", Args: args})
			},
			"program": func(s *session) {
				s.printSignIn(acts.SignIn{Handle: "AAAA-AAAA", Client: "Claude", Host: says, Asks: []string{"read"}})
			},
			"relay": func(s *session) {
				steps := []acts.PublicStep{{Step: "DNS", Err: says, Do: "look"}}
				s.app.sayPublic(publicResult{PublicState: acts.PublicState{
					URL: "https://a.example/mcp", Relays: []acts.PublicRelay{{Relay: "12D3", Why: says, Steps: steps}},
					SignIns: []acts.PublicStep{{Step: "/token", Client: says, From: "192.0.2.0"}}, LogErr: says,
				}})
			},
		} {
			for _, row := range onTerminal(t, width, func(a *app) { do(&session{app: a}) }) {
				if strings.HasPrefix(row, forged) {
					t.Fatalf("%s, %d: %q", what, pad, row)
				}
			}
		}
	}
}
