//go:build e2e && linux

package board

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// ends kills or freezes a process of the site while a lamp is on. The line is safe soon after,
// although the kernel keeps the level of a released line. The board measures that, and prints it.
//
// The limits are ten times those on real machines (see TestKilled), because an emulated processor
// has a tenth of the speed, and the host has other work.
func (m *machine) ends(t *testing.T) {
	const config = "site: { name: board }\ndevices:\n  lamp: { driver: gpio-out, pin: GPIO22, safe: off, min_off: 0s }\n"
	const slower = 10
	times := harness.Workload(4, 200)
	figures := make(map[string][]time.Duration)
	hit := func(what string, limit time.Duration, pid int, s syscall.Signal) {
		t.Helper()
		took := m.hit(t, pid, s, false)
		figures[what] = append(figures[what], took)
		if took > slower*limit {
			t.Errorf("%s: %v", what, took)
		}
	}
	for range times {
		m.StartSite(t, config)
		m.lit(t)
		hit("the site is killed", 100*time.Millisecond, m.pid(t), syscall.SIGKILL)
		m.gone(t)
	}
	m.StartSite(t, config)
	for range times {
		m.lit(t)
		hit("the site stands still", 1500*time.Millisecond, m.pid(t), syscall.SIGSTOP)
		m.hit(t, m.pid(t), syscall.SIGCONT, false)
		m.lit(t)
		hit("the guard is killed", 500*time.Millisecond, m.guard(t), syscall.SIGKILL)
		m.lit(t)
		hit("the guard stands still", 2*time.Second, m.guard(t), syscall.SIGSTOP)
	}
	for range times {
		m.lit(t)
		guard := m.guard(t)
		m.hit(t, m.pid(t), syscall.SIGSTOP, true) // so that it starts no other
		m.hit(t, guard, syscall.SIGKILL, true)
		if exit, _, said := m.Run(t, "/agentsite", "safe", "--data", "/data"); exit != 0 || m.Level(t, 22) {
			t.Errorf("agentsite safe ended with %d, and the line is high: %v; %s", exit, m.Level(t, 22), said)
		}
		m.hit(t, m.pid(t), syscall.SIGCONT, false)
	}
	m.lit(t)
	m.EndSite(t)
	for what, all := range figures {
		harness.LogDurations(t, what+", to a safe line", all)
	}
}

// lit switches the lamp on, once the site can.
func (m *machine) lit(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, 30*time.Second, "the lamp is switched on", func() bool {
		_, err := m.Client(t, true).Ask(t.Context(), "switch_output", []byte(`{"output":"lamp/switch","on":true,"for_seconds":60}`))
		return err == nil && m.Level(t, 22)
	})
}

// hit signals a process and has the board measure how long it takes until the lamp's line
// is high, or low.
func (m *machine) hit(t testing.TB, pid int, s syscall.Signal, high bool) time.Duration {
	t.Helper()
	return harness.AskGuest[time.Duration](t, m.Machine, "POST", "/signal-until", nil, "pid", fmt.Sprint(pid), "number", fmt.Sprint(int(s)), "path", m.SimulatedLine(t, 22)+"value", "content", map[bool]string{false: "0", true: "1"}[high])
}

func (m *machine) pid(t testing.TB) int {
	t.Helper()
	pid, _, _ := m.SiteProcess(t)
	return pid
}

// guard is its process.
func (m *machine) guard(t testing.TB) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(m.ReadFile(t, "/data/guard.lock")))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone waits until the site's process has ended.
func (m *machine) gone(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, "the site has ended", func() bool { _, running, _ := m.SiteProcess(t); return !running })
}
