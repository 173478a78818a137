//go:build e2e && linux

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// .ci/testbed makes the folder, .ci/e2e builds the programs for an emulated board.
var (
	TestbedDir   = os.Getenv("TESTBED")
	GuestProgram = os.Getenv("TESTBED_GUEST")
	ARM64Program = os.Getenv("AGENTSITE_ARM64") // as it is released
)

// Machine is an emulated board whose init process is the guest of device/testbed. The guest
// does over HTTP what a test asks for.
type Machine struct {
	Site    // the site, once it is started
	Control string
	LAN     string // the address of what the board has at port 8474, such as a site's HTTPS
	Console *LogBuffer
	lines   string // the folder of the simulated lines, once it was asked for
}

// sameAddresses are kernel parameters that halve what an emulated board costs: without random
// addresses QEMU translates a program once, and the kernel's page tables, which it would isolate
// from programs for the sake of those addresses, are not changed at each system call.
const sameAddresses = "nokaslr kpti=off norandmaps"

// Boot starts a board and waits until its guest answers. modules is a folder of kernel modules, and an archive of
// other files in root.cpio, or "", words are the kernel's parameters, and args QEMU's; the network card is net0.
// A first argument served=127.0.0.1:PORT gives the board that server, at port 80 of 10.0.2.100.
func Boot(t testing.TB, most time.Duration, modules, words string, args ...string) *Machine {
	t.Helper()
	forward := ""
	if addr, ok := strings.CutPrefix(args[0], "served="); ok {
		forward, args = forwardTo(t, addr), args[1:]
	}
	port, control, lan := FreePort(t), FreePort(t), FreePort(t)
	dir := TempDir(t)
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, initramfs(t, modules), 0o600); err != nil {
		t.Fatal(err)
	}
	network := fmt.Sprintf("user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[1]s,"+
		"hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[2]s,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:8474", port, control, lan) + forward
	cmd := exec.Command("timeout", append([]string{"900", "qemu-system-aarch64", "-display", "none", "-monitor", "none", "-serial", "stdio",
		"-no-reboot", "-netdev", network, "-initrd", initrd, "-append", words + " " + sameAddresses + " quiet panic=-1 port=" + port + " control=" + control}, args...)...)
	m := &Machine{Site: Site{URL: "http://127.0.0.1:" + port, Folder: dir}, Control: "http://127.0.0.1:" + control, LAN: "127.0.0.1:" + lan, Console: &LogBuffer{}}
	cmd.Stdout, cmd.Stderr = m.Console, m.Console
	begun, ended := time.Now(), StartEmulator(t, cmd)
	t.Cleanup(func() {
		if t.Failed() {
			site, _ := m.AskWithin(3*time.Second, "GET", "/site", nil)
			kernel, _ := m.AskWithin(3*time.Second, "GET", "/kernel", nil)
			said := func(json []byte) string {
				lines := strings.Split(string(json), `\n`)
				return strings.Join(lines[max(0, len(lines)-40):], "\n")
			}
			t.Logf("the site's last words:\n%s\nthe kernel's:\n%s\nthe console:\n%s", said(site), said(kernel), m.Console)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	WaitFor(t, most, "the board answers", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("QEMU ended: %v", err)
		default:
		}
		// QEMU accepts a connection that the board is not there for yet.
		_, err := m.AskWithin(time.Second, "GET", "/site", nil)
		return err == nil
	})
	t.Logf("%.1f s to the board's first answer", time.Since(begun).Seconds())
	return m
}

// StartEmulator starts an emulator or another program that must not outlive the tests: it gets SIGTERM if this process
// ends before it. The channel gives the result of its Wait.
func StartEmulator(t testing.TB, cmd *exec.Cmd) (ended chan error) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The kernel sends that signal when the thread ends that started the process
		// (prctl(2), PR_SET_PDEATHSIG): this one lives as long, whichever others end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return ended
}

// initramfs returns the board's files in the format that the kernel unpacks
// (driver-api/early-userspace/buffer-format.rst): the guest, the site's program, the modules
// and a console.
func initramfs(t testing.TB, modules string) []byte {
	t.Helper()
	const file, dir, character = 0o100755, 0o040755, 0o020600
	var b bytes.Buffer
	add := func(name string, mode, major, minor int, content []byte) {
		fmt.Fprintf(&b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
			0, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0, name)
		pad := func() { b.Write(make([]byte, -b.Len()&3)) }
		pad()
		b.Write(content)
		pad()
	}
	copied := func(name, from string) {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		add(name, file, 0, 0, content)
	}
	add("dev", dir, 0, 0, nil)
	add("dev/console", character, 5, 1, nil)
	add("modules", dir, 0, 0, nil)
	copied("init", GuestProgram)
	copied("agentsite", ARM64Program)
	files, err := filepath.Glob(filepath.Join(modules, "*.ko"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		copied("modules/"+filepath.Base(f), f)
	}
	add("TRAILER!!!", 0, 0, 0, nil)
	more, err := os.ReadFile(filepath.Join(modules, "root.cpio")) // other programs
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return append(b.Bytes(), more...)
}

// Ask sends a request to the guest and returns its JSON.
func (m *Machine) Ask(method, path string, body []byte, query ...string) ([]byte, error) {
	return m.AskWithin(250*time.Second, method, path, body, query...)
}

// forwardTo returns the option of QEMU's network that starts a program for each connection to a server, which speaks
// through its standard input and output.
func forwardTo(t testing.TB, addr string) string {
	t.Helper()
	relay := filepath.Join(TempDir(t), "relay")
	host, port, _ := strings.Cut(addr, ":")
	const script = "exec 3<>/dev/tcp/%s/%s\n{ cat <&3; kill $$; } &\ncat >&3\n"
	if err := os.WriteFile(relay, fmt.Appendf(nil, script, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	return ",guestfwd=tcp:10.0.2.100:80-cmd:bash " + relay
}

// AskWithin is Ask with a timeout.
func (m *Machine) AskWithin(most time.Duration, method, path string, body []byte, query ...string) ([]byte, error) {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	req, err := http.NewRequest(method, m.Control+path+"?"+values.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := (&http.Client{Timeout: most}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 200 {
		err = fmt.Errorf("%s", strings.TrimSpace(string(answer)))
	}
	return answer, err
}

// AskGuest is Machine.Ask, decodes the response and fails the test on an error.
func AskGuest[T any](t testing.TB, m *Machine, method, path string, body []byte, query ...string) (out T) {
	t.Helper()
	answer, err := m.Ask(method, path, body, query...)
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	if err != nil {
		t.Fatalf("%s %s %v: %v", method, path, query, err)
	}
	return out
}

// SetInput sets quantities that a chip measures, in pairs of a name and a value.
func (m *Machine) SetInput(t testing.TB, chip string, quantities ...any) {
	t.Helper()
	for i := 0; i < len(quantities); i += 2 {
		AskGuest[any](t, m, "POST", "/input", nil, "name", chip, "quantity", quantities[i].(string), "value", fmt.Sprint(quantities[i+1]))
	}
}

// SetState breaks or restores a chip's connection: ok, unresponsive, absent, hung.
func (m *Machine) SetState(t testing.TB, chip, to string) {
	t.Helper()
	AskGuest[any](t, m, "POST", "/state", nil, "name", chip, "to", to)
}

// SetStuck holds a line of the I2C bus low, or releases it.
func (m *Machine) SetStuck(t testing.TB, on bool) {
	t.Helper()
	AskGuest[any](t, m, "POST", "/stuck", nil, "on", fmt.Sprint(on))
}

// SetPlugged plugs in the USB bridge to the chips' bus, or unplugs it.
func (m *Machine) SetPlugged(t testing.TB, in bool) {
	t.Helper()
	AskGuest[any](t, m, "POST", "/plug", nil, "in", fmt.Sprint(in))
}

// Bus waits for the bus behind the bridge and returns its name, such as i2c-1.
func (m *Machine) Bus(t testing.TB) (name string) {
	t.Helper()
	WaitFor(t, 30*time.Second, "there is a bus behind the bridge", func() bool {
		for _, name = range m.ListFolder(t, "/sys/bus/i2c/devices") {
			if strings.HasPrefix(name, "i2c-") && strings.Contains(m.ReadFile(t, "/sys/bus/i2c/devices/"+name+"/name"), "MCP2221") {
				return true
			}
		}
		return false
	})
	return name
}

// ReadChip decodes a chip's outputs, and returns the number of writes to it.
func (m *Machine) ReadChip(t testing.TB, chip string, outputs any) (writes int) {
	t.Helper()
	state := AskGuest[struct {
		Writes  int
		Outputs json.RawMessage
	}](t, m, "GET", "/chip", nil, "name", chip)
	if err := json.Unmarshal(state.Outputs, outputs); err != nil {
		t.Fatal(err)
	}
	return state.Writes
}

// SimulatedLine returns the sysfs folder of a simulated line, GPIO0 to GPIO27.
func (m *Machine) SimulatedLine(t testing.TB, line int) string {
	t.Helper()
	if m.lines == "" {
		const config = "/sys/kernel/config/gpio-sim/board/"
		m.lines = "/sys/devices/platform/" + strings.TrimSpace(m.ReadFile(t, config+"dev_name")) +
			"/" + strings.TrimSpace(m.ReadFile(t, config+"bank0/chip_name"))
	}
	return fmt.Sprintf("%s/sim_gpio%d/", m.lines, line)
}

// Level reports whether a simulated line is high.
func (m *Machine) Level(t testing.TB, line int) (high bool) {
	t.Helper()
	return m.ReadFile(t, m.SimulatedLine(t, line)+"value") == "1\n"
}

// Pull pulls a simulated line up or down, which an input follows.
func (m *Machine) Pull(t testing.TB, line int, high bool) {
	t.Helper()
	m.WriteFile(t, m.SimulatedLine(t, line)+"pull", map[bool]string{false: "pull-down", true: "pull-up"}[high])
}

// ReadFile returns a file of the board.
func (m *Machine) ReadFile(t testing.TB, path string) string {
	t.Helper()
	return AskGuest[string](t, m, "GET", "/file", nil, "path", path)
}

// WriteFile writes a file of the board.
func (m *Machine) WriteFile(t testing.TB, path, text string) {
	t.Helper()
	AskGuest[any](t, m, "PUT", "/file", []byte(text), "path", path)
}

// ListFolder returns the names in a folder of the board.
func (m *Machine) ListFolder(t testing.TB, path string) []string {
	t.Helper()
	return AskGuest[[]string](t, m, "GET", "/list", nil, "path", path)
}

// Run runs a program on the board. The site's program is /agentsite.
func (m *Machine) Run(t testing.TB, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	body, _ := json.Marshal(args)
	ran := AskGuest[struct {
		Exit           int
		Stdout, Stderr string
	}](t, m, "POST", "/run", body)
	return ran.Exit, ran.Stdout, ran.Stderr
}

// StartSite starts the site with a configuration and waits until it answers.
func (m *Machine) StartSite(t testing.TB, config string) {
	t.Helper()
	m.WriteFile(t, "/agentsite.yaml", config)
	AskGuest[any](t, m, "POST", "/start", nil)
	WaitFor(t, 60*time.Second, "the site answers", func() bool {
		if _, running, log := m.SiteProcess(t); !running {
			t.Fatalf("the site ended:\n%s", log)
		}
		res, err := (&http.Client{Timeout: 5 * time.Second}).Get(m.URL + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	token := m.ReadFile(t, "/data/token")
	m.Token = strings.TrimSpace(token)
	if err := os.WriteFile(filepath.Join(m.Folder, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SiteProcess returns the site's process ID, whether it runs, and its log.
func (m *Machine) SiteProcess(t testing.TB) (pid int, running bool, log string) {
	t.Helper()
	n := AskGuest[struct {
		PID     int
		Running bool
		Log     string
	}](t, m, "GET", "/site", nil)
	return n.PID, n.Running, n.Log
}

// Signal sends a signal to the site and waits until it has ended.
func (m *Machine) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	AskGuest[any](t, m, "POST", "/signal", nil, "number", fmt.Sprint(int(s)))
}

// EndSite ends the site as systemd does, and fails the test if it does not end well.
func (m *Machine) EndSite(t testing.TB) {
	t.Helper()
	m.Signal(t, syscall.SIGTERM)
	if _, _, log := m.SiteProcess(t); !strings.HasSuffix(log, "ended: <nil>\n") {
		t.Errorf("the site did not end well:\n%s", log)
	}
}

// WaitForLine waits until a simulated line is high, or low.
func (m *Machine) WaitForLine(t testing.TB, line int, high bool) {
	t.Helper()
	WaitFor(t, 20*time.Second, fmt.Sprintf("GPIO%d is high: %v", line, high), func() bool { return m.Level(t, line) == high })
}

// GPIO17 returns the kernel's debug line of GPIO17, whose level it reads from the processor.
func (m *Machine) GPIO17(t testing.TB) string {
	t.Helper()
	for line := range strings.Lines(m.ReadFile(t, "/sys/kernel/debug/gpio")) {
		if strings.Contains(line, "(GPIO17 ") {
			return line
		}
	}
	t.Fatal("the kernel knows of no GPIO17")
	return ""
}

// UseTool calls a tool over MCP and returns its result.
func (m *Machine) UseTool(t testing.TB, tool, args string) []byte {
	t.Helper()
	answer, err := m.Client(t, true).Ask(t.Context(), tool, []byte(args))
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return answer.JSON
}
