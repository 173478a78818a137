//go:build e2e && linux

package devices

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"golang.org/x/sys/unix"
)

// rs485 is a line between the site's port and the units', two pseudo-terminals, with what happens on such lines.
type rs485 struct {
	site, units string // the ports

	mu     sync.Mutex
	cut    bool
	damage bool // of every third answer
}

// openTerminal returns the near end of a pseudo-terminal and the name of the other, which is raw.
func openTerminal(t *testing.T) (*os.File, string) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	port := "/dev/pts/" + strconv.Itoa(n)
	keep, err := unix.Open(port, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0) // so that the near end never hangs up
	if err != nil {
		t.Fatal(err)
	}
	mode, err := unix.IoctlGetTermios(keep, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Iflag, mode.Oflag, mode.Lflag = 0, 0, 0
	mode.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL
	if err := unix.IoctlSetTermios(keep, unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	near := os.NewFile(uintptr(fd), port)
	t.Cleanup(func() {
		near.Close()
		unix.Close(keep)
	})
	return near, port
}

func newRS485(t *testing.T) *rs485 {
	t.Helper()
	l := &rs485{}
	site, siteName := openTerminal(t)
	units, unitsName := openTerminal(t)
	l.site, l.units = siteName, unitsName
	go l.pass(site, units, false)
	go l.pass(units, site, true)
	return l
}

func (l *rs485) set(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *rs485) pass(from, to *os.File, answers bool) {
	b := make([]byte, 1024)
	for count := 0; ; count++ {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		l.mu.Lock()
		cut, damage := l.cut, l.damage
		l.mu.Unlock()
		if cut {
			continue
		}
		if answers && damage && count%3 == 0 {
			b[n-1] ^= 0x40
		}
		to.Write(b[:n])
	}
}

// servePymodbus starts the units and returns the port of Modbus TCP.
func servePymodbus(t *testing.T, serial string) string {
	t.Helper()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import pymodbus, serial_asyncio").CombinedOutput(); err != nil {
		t.Skipf("Debian's python3-pymodbus and python3-serial-asyncio are not installed: %s", out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command("/usr/bin/python3", "testdata/modbus.py", port, serial)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return port
}

// mbpoll reads or writes a coil by Modbus TCP, as another master.
func mbpoll(t *testing.T, port string, write ...string) string {
	t.Helper()
	args := []string{"-m", "tcp", "-p", port, "-a", "2", "-t", "0", "-r", "4", "-1", "-q", "127.0.0.1"}
	out, err := exec.Command("mbpoll", append(args, write...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("mbpoll: %v: %s", err, out)
	}
	return string(out)
}

func coilIsOn(t *testing.T, port string) bool { return strings.Contains(mbpoll(t, port), "\t1") }

type pointReading struct {
	Point   string `json:"point"`
	Value   any    `json:"value"`
	Quality string `json:"quality"`
	Why     string `json:"why"`
}

func readAll(t *testing.T, s *harness.Site) map[string]pointReading {
	t.Helper()
	answer, err := s.Client(t, false).Ask(t.Context(), "read_points", []byte(`{}`))
	all := make(map[string]pointReading)
	if err != nil {
		return all
	}
	var got struct {
		Readings []pointReading `json:"readings"`
	}
	if err := json.Unmarshal(answer.JSON, &got); err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Readings {
		all[r.Point] = r
	}
	return all
}

// TestModbus runs a site with units of pymodbus on a serial line and by TCP, with mbpoll as another master.
func TestModbus(t *testing.T) {
	line := newRS485(t)
	port := servePymodbus(t, line.units)
	if _, err := exec.LookPath("mbpoll"); err != nil {
		t.Skip(err)
	}
	s := harness.Start(t, fmt.Sprintf(`site: { name: plant }
devices:
  meter: { driver: modbus, port: %[1]s, baud: 19200, unit_id: 1, map: eastron-sdm72, every: 1s }
  board:
    driver: modbus
    port: %[1]s
    baud: 19200
    unit_id: 2
    map: waveshare-relay-8
    every: 1s
    outputs: { pump: { use: relay4, safe: off } }
    points: { pump: { max_on: 1h, min_off: 0s } }
  missing: { driver: modbus, port: %[1]s, baud: 19200, unit_id: 9, map: eastron-sdm72, every: 1s }
  tank:
    driver: modbus
    address: 127.0.0.1:%[2]s
    unit_id: 3
    every: 1s
    inputs: { temperature: { register: 30011, type: float32, unit: Cel, range: -40..125 } }
`, line.site, port), harness.Need(t, "the program", harness.Program))
	good := func(points ...string) bool {
		all := readAll(t, s)
		for _, p := range points {
			if all[p].Quality != "good" {
				return false
			}
		}
		return true
	}
	harness.WaitFor(t, 60*time.Second, "all units that are there answer", func() bool {
		return good("meter/power", "board/pump", "tank/temperature")
	})
	all := readAll(t, s)
	if all["meter/power"].Value != 1234.5 || all["meter/energy"].Value != 107.75 || all["tank/temperature"].Value != 21.5 {
		t.Errorf("%v", all)
	}
	if all["missing/power"].Quality == "good" {
		t.Errorf("%v", all["missing/power"])
	}

	switchOn := func() {
		t.Helper()
		harness.WaitFor(t, 60*time.Second, "the pump is switched on", func() bool {
			code, answer := s.Post(t, harness.ToolCall("switch_output", `{"output":"board/pump","on":true,"for_seconds":600}`), "Mcp-Name", "switch_output")
			return code == 200 && strings.Contains(answer, harness.MovedField)
		})
	}
	switchOn()
	if !coilIsOn(t, port) {
		t.Error("the pump is on, and the coil is not")
	}
	mbpoll(t, port, "0") // another master
	harness.WaitFor(t, 20*time.Second, "the site sees that somebody switched the pump off", func() bool {
		r := readAll(t, s)["board/pump"]
		return r.Quality != "good" || r.Value == false
	})

	line.set(func() { line.damage = true })
	for range 10 {
		harness.WaitFor(t, 20*time.Second, "the meter is read in spite of damaged answers",
			func() bool { return good("meter/power") })
	}
	if v := readAll(t, s)["meter/power"].Value; v != 1234.5 {
		t.Errorf("a damaged answer is believed: %v", v)
	}
	line.set(func() { line.damage = false })

	switchOn()
	line.set(func() { line.cut = true })
	cut := time.Now()
	harness.WaitFor(t, 60*time.Second, "the lost line is a fault", func() bool {
		all := readAll(t, s)
		return all["board/pump"].Quality == "fault" && all["meter/power"].Quality == "fault"
	})
	t.Logf("the lost line is a fault after %v", time.Since(cut).Round(100*time.Millisecond))
	if !good("tank/temperature") {
		t.Error("a unit by TCP is not good either")
	}
	if !coilIsOn(t, port) {
		t.Error("the unit itself switched the coil off")
	}
	line.set(func() { line.cut = false })
	harness.WaitFor(t, 60*time.Second, "the pump is safe", func() bool { return !coilIsOn(t, port) })
	harness.WaitFor(t, 120*time.Second, "all is good again",
		func() bool { return good("meter/power", "board/pump", "tank/temperature") })

	switchOn()
	s.Stop(t)
	if coilIsOn(t, port) {
		t.Error("the site has ended, and the pump is on")
	}
}
