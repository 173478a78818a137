//go:build e2e && linux

package e2e

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
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the script .ci/testbed makes, and the programs for an emulated board.
var (
	testbedDir   = os.Getenv("TESTBED")
	guestProgram = os.Getenv("TESTBED_GUEST")
	arm64Program = os.Getenv("AGENTSITE_ARM64") // as it is released
)

// machine is an emulated board with the guest of device/testbed in charge of it; the
// guest's control does what a test asks for.
type machine struct {
	running // the site, once it is started
	control string
	console *logged
	lines   string // the folder of the simulated lines, once it was asked for
}

// boot starts a board and waits until its guest answers. modules is a folder or "",
// words are the kernel's, and args QEMU's, with a network card on net0.
func boot(t testing.TB, most time.Duration, modules, words string, args ...string) *machine {
	t.Helper()
	port, control := freePort(t), freePort(t)
	dir := folder(t)
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, initramfs(t, modules), 0o600); err != nil {
		t.Fatal(err)
	}
	network := fmt.Sprintf("user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[1]s,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[2]s", port, control)
	cmd := exec.Command("timeout", append([]string{"600", "qemu-system-aarch64", "-display", "none", "-monitor", "none", "-serial", "stdio",
		"-no-reboot", "-netdev", network, "-initrd", initrd, "-append", words + " quiet panic=-1 port=" + port + " control=" + control}, args...)...)
	m := &machine{running: running{URL: "http://127.0.0.1:" + port, Folder: dir}, control: "http://127.0.0.1:" + control, console: &logged{}}
	cmd.Stdout, cmd.Stderr = m.console, m.console
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // however this test ends
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun, ended := time.Now(), make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			site, _ := m.askFor(3*time.Second, "GET", "/node", nil)
			kernel, _ := m.askFor(3*time.Second, "GET", "/kernel", nil)
			said := func(json []byte) string {
				lines := strings.Split(string(json), `\n`)
				return strings.Join(lines[max(0, len(lines)-40):], "\n")
			}
			t.Logf("the site's last words:\n%s\nthe kernel's:\n%s\nthe console:\n%s", said(site), said(kernel), m.console)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	until(t, most, "the board answers", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("QEMU ended: %v", err)
		default:
		}
		// QEMU accepts a connection that the board is not there for yet.
		_, err := m.askFor(time.Second, "GET", "/node", nil)
		return err == nil
	})
	t.Logf("%.1f s to the board's first answer", time.Since(begun).Seconds())
	return m
}

// initramfs is the board's files, as the kernel unpacks them (its document
// driver-api/early-userspace/buffer-format.rst): the guest, the site's program, the
// modules, and a console to write on.
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
	copied("init", guestProgram)
	copied("agentsite", arm64Program)
	files, err := filepath.Glob(filepath.Join(modules, "*.ko"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		copied("modules/"+filepath.Base(f), f)
	}
	add("TRAILER!!!", 0, 0, 0, nil)
	return b.Bytes()
}

// ask asks the board's guest; its answer is JSON.
func (m *machine) ask(method, path string, body []byte, query ...string) ([]byte, error) {
	return m.askFor(250*time.Second, method, path, body, query...)
}

func (m *machine) askFor(most time.Duration, method, path string, body []byte, query ...string) ([]byte, error) {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	req, err := http.NewRequest(method, m.control+path+"?"+values.Encode(), bytes.NewReader(body))
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

// do has the guest do something that must not fail, and returns its answer.
func do[T any](t testing.TB, m *machine, method, path string, body []byte, query ...string) (out T) {
	t.Helper()
	answer, err := m.ask(method, path, body, query...)
	if err == nil {
		err = json.Unmarshal(answer, &out)
	}
	if err != nil {
		t.Fatalf("%s %s %v: %v", method, path, query, err)
	}
	return out
}

// tell tells a chip of the world, in pairs of a quantity and its value.
func (m *machine) tell(t testing.TB, chip string, world ...any) {
	t.Helper()
	for i := 0; i < len(world); i += 2 {
		do[any](t, m, "POST", "/tell", nil, "name", chip, "what", world[i].(string), "value", fmt.Sprint(world[i+1]))
	}
}

// state breaks a chip's connection, or mends it: ok, deaf, absent.
func (m *machine) state(t testing.TB, chip, to string) {
	t.Helper()
	do[any](t, m, "POST", "/state", nil, "name", chip, "to", to)
}

// stuck holds a line of the bus low, or lets it go.
func (m *machine) stuck(t testing.TB, on bool) {
	t.Helper()
	do[any](t, m, "POST", "/stuck", nil, "on", fmt.Sprint(on))
}

// plug plugs the bridge in that carries the chips' bus, or unplugs it.
func (m *machine) plug(t testing.TB, in bool) {
	t.Helper()
	do[any](t, m, "POST", "/plug", nil, "in", fmt.Sprint(in))
}

// bus waits for the bus behind the bridge and names it, such as i2c-1.
func (m *machine) bus(t testing.TB) (name string) {
	t.Helper()
	until(t, 30*time.Second, "there is a bus behind the bridge", func() bool {
		for _, name = range m.list(t, "/sys/bus/i2c/devices") {
			if strings.HasPrefix(name, "i2c-") && strings.Contains(m.file(t, "/sys/bus/i2c/devices/"+name+"/name"), "MCP2221") {
				return true
			}
		}
		return false
	})
	return name
}

// look is what an observer sees of a chip, into shows, and how often it was written
// to.
func (m *machine) look(t testing.TB, chip string, shows any) (writes int) {
	t.Helper()
	seen := do[struct {
		Writes int
		Shows  json.RawMessage
	}](t, m, "GET", "/chip", nil, "name", chip)
	if err := json.Unmarshal(seen.Shows, shows); err != nil {
		t.Fatal(err)
	}
	return seen.Writes
}

// sim is the folder of a simulated line, GPIO0 to GPIO27.
func (m *machine) sim(t testing.TB, line int) string {
	t.Helper()
	if m.lines == "" {
		const config = "/sys/kernel/config/gpio-sim/board/"
		m.lines = "/sys/devices/platform/" + strings.TrimSpace(m.file(t, config+"dev_name")) +
			"/" + strings.TrimSpace(m.file(t, config+"bank0/chip_name"))
	}
	return fmt.Sprintf("%s/sim_gpio%d/", m.lines, line)
}

// level is a simulated line as whatever is wired to it sees it.
func (m *machine) level(t testing.TB, line int) (high bool) {
	t.Helper()
	return m.file(t, m.sim(t, line)+"value") == "1\n"
}

// pull is whatever is wired to a simulated line: an input follows it.
func (m *machine) pull(t testing.TB, line int, high bool) {
	t.Helper()
	m.put(t, m.sim(t, line)+"pull", map[bool]string{false: "pull-down", true: "pull-up"}[high])
}

func (m *machine) file(t testing.TB, path string) string {
	t.Helper()
	return do[string](t, m, "GET", "/file", nil, "path", path)
}

func (m *machine) put(t testing.TB, path, text string) {
	t.Helper()
	do[any](t, m, "PUT", "/file", []byte(text), "path", path)
}

func (m *machine) list(t testing.TB, path string) []string {
	t.Helper()
	return do[[]string](t, m, "GET", "/list", nil, "path", path)
}

// run runs a program on the board; the site's own is /agentsite.
func (m *machine) run(t testing.TB, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	body, _ := json.Marshal(args)
	ran := do[struct {
		Exit           int
		Stdout, Stderr string
	}](t, m, "POST", "/run", body)
	return ran.Exit, ran.Stdout, ran.Stderr
}

// site starts the site with a configuration and waits until it answers.
func (m *machine) site(t testing.TB, config string) {
	t.Helper()
	m.put(t, "/agentsite.yaml", config)
	do[any](t, m, "POST", "/start", nil)
	until(t, 60*time.Second, "the site answers", func() bool {
		if _, running, log := m.node(t); !running {
			t.Fatalf("the site ended:\n%s", log)
		}
		res, err := (&http.Client{Timeout: 5 * time.Second}).Get(m.URL + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	token := m.file(t, "/data/token")
	m.Token = strings.TrimSpace(token)
	if err := os.WriteFile(filepath.Join(m.Folder, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
}

// node is the site's process.
func (m *machine) node(t testing.TB) (pid int, running bool, log string) {
	t.Helper()
	n := do[struct {
		PID     int
		Running bool
		Log     string
	}](t, m, "GET", "/node", nil)
	return n.PID, n.Running, n.Log
}

// signal signals the site and waits until it has ended.
func (m *machine) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	do[any](t, m, "POST", "/signal", nil, "number", fmt.Sprint(int(s)))
}

// end ends the site as systemd would.
func (m *machine) end(t testing.TB) {
	t.Helper()
	m.signal(t, syscall.SIGTERM)
	if _, _, log := m.node(t); !strings.HasSuffix(log, "ended: <nil>\n") {
		t.Errorf("the site did not end well:\n%s", log)
	}
}
