//go:build e2e && linux

package install

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// childDisk is an image with public servers of the Model Context Protocol in node_modules, and
// testdata/child as child.
var childDisk = os.Getenv("CHILD_DISK")

const (
	publicServers = "/opt/children/node_modules/@modelcontextprotocol/server-"
	childSecret   = "s3cret-of-the-child"
)

// children are the tools of other programs, in the units that agentsite prepare writes.
func (p packaged) children(t *testing.T) {
	harness.Need(t, "the disk with children", childDisk)
	begun := time.Now()
	p.does(t, "mkdir -p /opt/children && mount -o ro /dev/vdb /opt/children && mkdir -p /home && touch /home/secret /root/secret")
	p.does(t, "umask 077; printf "+childSecret+" >/etc/agentsite/look.key")
	address := "127.0.0.1" + p.URL[strings.LastIndex(p.URL, ":"):]
	site := p.ReadFile(t, "/etc/agentsite/agentsite.yaml")
	own := func(names ...string) (text string) {
		for _, name := range names {
			text += "  " + name + ": { kind: mcp, command: [/opt/children/child, " + name + "], tools: [go] }\n"
		}
		return text
	}
	lasting := "agents:\n" +
		"  everything: { kind: mcp, command: [node, " + publicServers + "everything/dist/index.js], tools: [echo, get-sum] }\n" +
		"  memory: { kind: mcp, command: [env, MEMORY_FILE_PATH=/var/lib/agentsite-child-memory/m.jsonl, node, " + publicServers + "memory/dist/index.js], tools: [create_entities, read_graph] }\n" +
		"  look: { kind: mcp, command: [/opt/children/child, look, '" + address + "'], tools: [go], secrets: { API_KEY: look.key } }\n" +
		"  online: { kind: mcp, command: [/opt/children/child, look, '" + address + "'], tools: [go], net: true }\n" + own("deaf")
	p.WriteFile(t, "/etc/agentsite/agentsite.yaml", site+lasting+own("changes", "crash", "flood", "greedy"))
	p.does(t, "rm -rf /run/systemd/system/agentsite*.service.d && systemctl daemon-reload") // another test's
	// agentsite-prepare.service writes the units and has them loaded, from its own sandbox. On a busy
	// machine an emulated board may not do that within the service's 25 s; the next start goes on then.
	p.within(t, 3, "systemctl restart agentsite && timeout 10 sh -c 'until [ -S /run/agentsite-child-everything.sock ]; do sleep 1; done'")
	t.Logf("%.1f s for a restart with nine new children", time.Since(begun).Seconds())
	p.reached(t)

	begun = time.Now()
	p.does(t, "for c in everything memory; do for n in 1 2 3; do agentsite agents tools $c >/dev/null && break; sleep 2; done; done")
	t.Logf("%.1f s until two public servers have listed their tools", time.Since(begun).Seconds())
	for _, name := range []string{"everything", "memory", "look", "online", "deaf", "changes", "crash", "flood", "greedy"} {
		p.accept(t, name)
	}
	t.Run("crashes", p.childCrashes)
	t.Run("public", func(t *testing.T) {
		p.call(t, "everything_get_sum", `{"a":2,"b":3}`, "The sum of 2 and 3 is 5")
		p.call(t, "memory_create_entities", `{"entities":[{"name":"the shed","entityType":"building","observations":["has a relay"]}]}`, "the shed")
		t.Log(p.does(t, "for f in /sys/fs/cgroup/system.slice/agentsite-child-*@*/memory.peak; do echo $(basename $(dirname $f)) $(cat $f); done"))
	})
	t.Run("sandbox", p.childSandbox)
	t.Run("secret", p.secretOfChild)
	t.Run("changes", p.childChanges)
	t.Run("takes memory", func(t *testing.T) {
		p.call(t, "greedy_go", "{}", "is not known")
		p.gone(t, "greedy")
		if log := p.does(t, "journalctl -u 'agentsite-child-greedy@*' --no-pager -o cat"); !strings.Contains(log, "oom-kill") {
			t.Errorf("the log of its unit:\n%s", log)
		}
	})
	t.Run("floods", p.childFloods)
	t.Run("does not end", func(t *testing.T) { // as the child that floods
		p.call(t, "deaf_go", "{}", "done")
		p.does(t, "agentsite agents pause deaf")
		p.gone(t, "deaf", "flood")
		p.does(t, "agentsite agents resume deaf")
	})
	p.crashedOff(t)

	t.Run("others", func(t *testing.T) {
		p.WriteFile(t, "/etc/agentsite/agentsite.yaml", site+lasting+"  late: { kind: mcp, command: [/opt/children/child, look], tools: [go] }\n")
		begun := time.Now()
		p.does(t, "agentsite prepare --config /etc/agentsite/agentsite.yaml && agentsite reload")
		t.Logf("%.1f s to add one and to remove four", time.Since(begun).Seconds())
		p.gone(t, "changes")
		if left := p.does(t, "ls -d /run/agentsite-child-* /run/systemd/system/agentsite-child-* | grep -E 'changes|crash|flood|greedy' || true"); left != "" {
			t.Errorf("of removed children there are\n%s", left)
		}
		p.call(t, "changes_go", "{}", "Unknown tool")
		p.call(t, "look_go", "{}", "CapEff")
		p.accept(t, "late")
		p.call(t, "late_go", "{}", "CapEff")
	})
	t.Run("the site ends", func(t *testing.T) {
		p.until(t, "deaf_go", "done")
		p.does(t, "kill -9 $(systemctl show -P MainPID agentsite)")
		p.gone(t, "deaf", "look", "everything", "memory")
		p.within(t, 60, "systemctl -q is-active agentsite")
		p.reached(t)
		p.until(t, "deaf_go", "done")
		p.until(t, "memory_read_graph", "has a relay")
		p.does(t, "systemctl stop agentsite")
		p.gone(t, "deaf", "memory")
		p.does(t, "systemctl start agentsite")
		p.reached(t)
	})
}

// accept accepts what a child offers now.
func (p packaged) accept(t testing.TB, name string) {
	t.Helper()
	offer := p.does(t, "agentsite agents tools "+name)
	_, digest, _ := strings.Cut(offer, "--accept ")
	p.does(t, "agentsite agents tools "+name+" --accept '"+digest+"'")
}

// call calls a tool, whose answer or fault has to have words in it.
func (p packaged) call(t testing.TB, tool, args, want string) (answer string) {
	t.Helper()
	_, out, errs := p.sh(t, "agentsite call "+tool+" '"+args+"'")
	if !strings.Contains(out+errs, want) {
		t.Errorf("%s has no %q in its answer:\n%s%s", tool, want, out, errs)
	}
	return out
}

// until calls a tool until its answer contains a text, because an agent that was resumed, or whose
// site has just started, may not be ready.
func (p packaged) until(t testing.TB, tool, want string) {
	t.Helper()
	p.within(t, 60, "agentsite call "+tool+" '{}' 2>&1 | grep -q '"+want+"'")
}

// within waits until a command line is true there, where a try takes a while.
func (p packaged) within(t testing.TB, seconds int, line string) {
	t.Helper()
	if exit, _, errs := p.sh(t, fmt.Sprintf("for n in $(seq %d); do if %s; then exit 0; fi; sleep 1; done; exit 1", seconds, line)); exit != 0 {
		t.Fatalf("%d s without: %s\n%s", seconds, line, errs)
	}
}

// gone waits until nothing runs of children.
func (p packaged) gone(t testing.TB, names ...string) {
	t.Helper()
	units := ""
	for _, name := range names {
		units += " 'agentsite-child-" + name + "@*'"
	}
	begun := time.Now()
	p.within(t, 60, `[ -z "$(systemctl list-units --all --plain --no-legend`+units+`)" ]`)
	t.Logf("%.1f s until no unit runs of%s", time.Since(begun).Seconds(), units)
}

// childSandbox: a child has nothing but its folder, and the network where it is to have that.
func (p packaged) childSandbox(t *testing.T) {
	saw := p.call(t, "look_go", "{}", "write .: ok")
	online := p.call(t, "online_go", "{}", "write .: ok")
	for line := range strings.Lines(saw) {
		if what, ok := strings.CutSuffix(line, ": ok\n"); ok && what != "write ." && what != "write /dev/shm" {
			t.Errorf("a child can %s", what)
		}
	}
	for _, none := range []string{"CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !strings.Contains(saw, none+": 0000000000000000\n") {
			t.Errorf("a child has %s", none)
		}
	}
	for _, want := range []string{"NoNewPrivs: 1\n", "Seccomp: 2\n", "processes 1\n", "env HOME=/var/lib/agentsite-child-look\n", "env API_KEY=" + childSecret + "\n"} {
		if !strings.Contains(saw, want) {
			t.Errorf("a child has no %q", want)
		}
	}
	user := regexp.MustCompile(`Uid: (\d+) (\d+) (\d+) (\d+)\n`)
	one, two := user.FindStringSubmatch(saw), user.FindStringSubmatch(online)
	if one == nil || two == nil || one[1] == two[1] {
		t.Fatalf("the users of two children are %v and %v", one, two)
	}
	for _, id := range append(one[1:], two[1:]...) { // those that systemd makes up
		if n, err := strconv.Atoi(id); err != nil || n < 61184 || n > 65519 {
			t.Errorf("a child has the user %s", id)
		}
	}
	if strings.Contains(saw, "interface eth0") || !strings.Contains(online, "interface eth0") {
		t.Error("a child without net: true has the network, or one with it has none")
	}
	address := "dial 127.0.0.1" + p.URL[strings.LastIndex(p.URL, ":"):] + ": "
	if !strings.Contains(saw, address) || !strings.Contains(online, address+"ok\n") {
		t.Errorf("it is not %sok with the network", address)
	}
	if t.Failed() {
		t.Logf("a child saw\n%s\nand one with the network\n%s", saw, online)
	}
	for unit, most := range map[string]int{"look@x": 10, "online@x": 16, "look.end@x": 13} {
		exit, out, errs := p.sh(t, fmt.Sprintf("systemd-analyze security --no-pager --threshold=%d agentsite-child-%s.service", most, unit))
		lines := strings.Split(strings.TrimSpace(out), "\n")
		t.Log(lines[len(lines)-1])
		if exit != 0 || !strings.Contains(out, "Overall exposure level") {
			t.Errorf("%s lays more open than %d tenths: %d\n%s%s", unit, most, exit, out, errs)
		}
	}
}

// secretOfChild: nobody but a child finds its secret.
func (p packaged) secretOfChild(t *testing.T) {
	folder := regexp.MustCompile(`env CREDENTIALS_DIRECTORY=(\S+)`).FindStringSubmatch(p.call(t, "look_go", "{}", "API_KEY"))
	if folder == nil {
		t.Fatal("the child has no folder of secrets")
	}
	p.does(t, "grep -q "+childSecret+" "+folder[1]+"/API_KEY")
	process := p.does(t, "cat /sys/fs/cgroup/system.slice/agentsite-child-look@*/cgroup.procs | head -n 1")
	for _, user := range []string{"agentsite", "nobody"} {
		for _, file := range []string{folder[1] + "/API_KEY", "/etc/agentsite/look.key", "/proc/" + process + "/environ"} {
			if exit, _, _ := p.sh(t, "setpriv --reuid="+user+" --regid=$(id -g "+user+") --init-groups cat "+file); exit == 0 {
				t.Errorf("%s can read %s", user, file)
			}
		}
	}
	shown := p.does(t, "systemctl show 'agentsite-child-look@*'; journalctl --no-pager; cat /run/systemd/system/agentsite-child-look*; for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; done; true")
	if strings.Contains(shown, childSecret) {
		t.Error("a unit, the log or a command line has the secret")
	}
}

// childChanges: a tool in other words is withdrawn until it is accepted.
func (p packaged) childChanges(t *testing.T) {
	p.call(t, "changes_go", "{}", "done")
	p.does(t, "agentsite agents pause changes && agentsite agents resume changes")
	p.until(t, "changes_go", "changed this tool")
	if tools := p.does(t, "agentsite tools"); strings.Contains(tools, "changes_go") || !strings.Contains(tools, "look_go") {
		t.Errorf("the tools are\n%s", tools)
	}
	if offer := p.does(t, "agentsite agents tools changes"); !strings.Contains(offer, "go, offered as changes_go: changed") || !strings.Contains(offer, "open the door") {
		t.Error(offer)
	}
	p.accept(t, "changes")
	p.call(t, "changes_go", "{}", "done")
}

// childFloods: a flood ends the child, whatever it does about that, and the site answers meanwhile.
func (p packaged) childFloods(t *testing.T) {
	memory := func(what string) int {
		n, err := strconv.Atoi(p.does(t, "sed -n 's/^"+what+":[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$(systemctl show -P MainPID agentsite)/status"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := max(memory("VmRSS"), memory("VmHWM"))
	begun := time.Now()
	said := p.does(t, "agentsite call flood_go '{}' 2>&1 & agentsite read; wait")
	t.Logf("%.1f s for a flood and a reading beside it; %d kB of memory, and %d before", time.Since(begun).Seconds(), memory("VmHWM"), before)
	if !strings.Contains(said, "it floods") {
		t.Error(said)
	}
	if more := memory("VmHWM") - before; more > 16<<10 {
		t.Errorf("it took %d kB of the site's memory", more)
	}
}

// childCrashes calls the child that crashes, until it is off, beside the other tests.
func (p packaged) childCrashes(t *testing.T) {
	p.call(t, "crash_go", "{}", "is not known")
	p.does(t, "(for n in $(seq 120); do agentsite call crash_go '{}' 2>&1 | tee -a /root/crash.log | grep -q 'is off' && break; sleep 1; done) </dev/null >/dev/null 2>&1 &")
}

// crashedOff: after five crashes a child is off, until it is resumed.
func (p packaged) crashedOff(t *testing.T) {
	p.within(t, 90, "grep -q 'crash is off, because it crashed 5 times' /root/crash.log")
	starts := func() string {
		return p.does(t, "journalctl -u 'agentsite-child-crash@*' --no-pager -o cat | grep -c ^Started")
	}
	if n := starts(); n != "5" {
		t.Errorf("the child that crashes was started %s times", n)
	}
	if log := p.does(t, "cat /root/crash.log"); !strings.Contains(log, "started again in") {
		t.Errorf("there was no time between its starts:\n%s", log)
	}
	p.does(t, "agentsite agents resume crash")
	p.call(t, "crash_go", "{}", "is not known")
	if n := starts(); n != "6" {
		t.Errorf("the child that crashes was started %s times", n)
	}
}
