package tasks

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
)

// How often the machine stops in the midst of 64 tasks: in memory, and by kill -9 of a process. It
// is a part of what make soak does.
var (
	crashes = flag.Int("crashes", 450, "crashes of a disk in memory")
	kills   = flag.Int("kills", 50, "processes that are killed")
)

// workload is the 64 tasks of a crash test, with the work, the asker and the key of each.
type workload struct {
	scripts [maxLive]string
	ids     [maxLive]string // as they were promised
	states  [maxLive]task.State
}

func newWorkload(chance *rand.Rand) *workload {
	w := new(workload)
	for i := range w.scripts {
		for range 1 + chance.IntN(5) {
			w.scripts[i] += string("mmxsqowr"[chance.IntN(8)])
		}
	}
	return w
}

func (w *workload) asker(i int) agents.Principal {
	return agents.Principal{ID: fmt.Sprint("asker", i%(maxLive/maxAccount)), Owner: true}
}

func (w *workload) request(i int) task.Request {
	day := 86400.0 // many crashes may take an hour, in which nobody works
	args := scriptArgs{N: fmt.Sprint(i), Do: w.scripts[i], FarSeconds: day}
	r := keyed(requestWith([]string{"a", "b", "c", "d"}[i/16], args), fmt.Sprint("key ", i))
	r.Seconds = &day
	return r
}

// ask asks for the tasks that nobody promised yet, and returns a mistake.
func (w *workload) ask(m *Manager, dead func() bool) string {
	for i := range w.scripts {
		if w.ids[i] != "" {
			continue
		}
		got, err := m.Ask(context.Background(), w.asker(i), w.request(i))
		if dead() {
			return ""
		}
		if err != nil {
			return fmt.Sprintf("task %d: %v", i, err)
		}
		w.ids[i] = got.ID
	}
	return ""
}

// look checks that each acknowledged task is there, by its ID and by its key, in a state that may
// follow the one last reported. It answers the questions.
func (w *workload) look(m *Manager, dead func() bool) (left int, mistake string) {
	for i, id := range w.ids {
		if id == "" {
			left++
			continue
		}
		got, err := m.Task(context.Background(), w.asker(i), id)
		if dead() {
			return left, ""
		}
		if err != nil {
			return left, fmt.Sprintf("task %d is lost: %v", i, err)
		}
		if !reachable(w.states[i], got.State) {
			return left, fmt.Sprintf("task %d %q was %s, and is %s", i, w.scripts[i], w.states[i], got.State)
		}
		w.states[i] = got.State
		if !got.State.Ended() {
			left++
		}
		if got.State == task.InputRequired {
			m.Answer(context.Background(), w.asker(i), id, got.Question.ID, "yes")
		}
	}
	return left, ""
}

// reachable reports whether a state may be seen some time after another one. Any state but the
// first may follow until the task has ended. The exact transitions are asserted where entries are
// applied.
func reachable(from, to task.State) bool {
	return from == "" || from == to || !from.Ended() && to != task.Submitted
}

// judge looks at the end: everything has ended, nothing was done twice, and all of what is
// completed was done.
func (w *workload) judge(m *Manager, done map[string]int) string {
	completed := 0
	for i, id := range w.ids {
		asker := w.asker(i)
		byKey, err := m.Ask(context.Background(), asker, w.request(i))
		if err != nil || byKey.ID != id {
			return fmt.Sprintf("task %d is not found by its key: %v", i, err)
		}
		for at, what := range w.scripts[i] {
			name := fmt.Sprintf("%c%d/p%d", what, i, at)
			n := done[name]
			if n > 1 {
				return fmt.Sprintf("%s was done %d times: %+v", name, n, byKey)
			}
			if what == 'r' && n == 1 { // another site that was asked is asked for the same again
				if k := strings.IndexFunc(w.scripts[i], func(r rune) bool { return r == 'q' }); k < 0 && byKey.Steps[at].Outcome != "done" {
					return fmt.Sprintf("%s was done, and is not known: %+v", name, byKey)
				}
			}
			if byKey.State == task.Completed && strings.ContainsRune("moxsr", what) && n != 1 {
				return fmt.Sprintf("%s was not done: %+v", name, byKey)
			}
		}
		switch {
		case byKey.State == task.Completed:
			completed++
		case byKey.State != task.Failed || byKey.Fault != "unknown_outcome":
			return fmt.Sprintf("task %d: %+v", i, byKey)
		}
	}
	if all, err := m.List(context.Background(), boss); err != nil || len(all) != maxLive {
		return fmt.Sprintf("%d tasks: %v", len(all), err)
	}
	if completed < maxLive/4 {
		return fmt.Sprintf("only %d of them were completed, so that this says little", completed)
	}
	return ""
}

// TestCrashes stops the machine at random operations on the disk, which keeps of what was not
// synced a part or nothing.
func TestCrashes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	chance := rand.New(rand.NewPCG(seed, 1))
	count, rounds := *crashes, 0
	if testing.Short() {
		count = 50
	}
	for ; count > 0; rounds++ {
		var mistake string
		synctest.Test(t, func(*testing.T) {
			w, r := newWorkload(chance), newRig()
			r.crew = newCrew("a", "b", "c", "d")
			dead := func() bool { r.disk.mu.Lock(); defer r.disk.mu.Unlock(); return r.disk.crashed }
			r.house.dead = dead
			for left := 1; left > 0 && mistake == ""; {
				if r.disk.ops = -1; count > 0 {
					r.disk.ops = chance.IntN(150)
				}
				r.desk.approve() // requests go with the process
				clear(r.desk.approved)
				r.start()
				mistake = w.ask(r.Manager, dead)
				for mistake == "" && !dead() && left > 0 {
					synctest.Wait()
					left, mistake = w.look(r.Manager, dead)
					r.desk.approve()
					time.Sleep(30 * time.Second)
				}
				synctest.Wait()
				if mistake == "" && !dead() {
					if mistake = w.judge(r.Manager, r.house.counts()); dead() {
						mistake = ""
					}
				}
				crashed := dead()
				r.stopTimers()
				r.stop()
				synctest.Wait()
				if crashed {
					count--
					left = 1
					r.disk = r.disk.reboot(chance)
				}
			}
		})
		if mistake != "" {
			t.Fatalf("%s (seed %d, round %d)", mistake, seed, rounds)
		}
	}
	t.Logf("%d crashes in %d rounds of %d tasks", *crashes, rounds, maxLive)
}

// childFolder is where a killed process keeps its tasks and what it did.
const childFolder, childSeed = "AGENTSITE_TASKS_TEST", "AGENTSITE_TASKS_SEED"

// child is the process that TestKill kills. It asks for the tasks of the workload, and writes
// down what was done and promised as it happens.
func child() bool {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return false
	}
	scriptWait = time.Millisecond
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	write := func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) } // one write
	seed, err := strconv.Atoi(os.Getenv(childSeed))
	if err != nil {
		panic(err)
	}
	w := newWorkload(rand.New(rand.NewPCG(uint64(seed), 1)))
	r := newRig()
	r.crew = newCrew("a", "b", "c", "d")
	r.house.act = func(_, what string) { write("did %s", what) }
	r.shed.knows = func(name string) bool { // a site that goes on while this one is killed
		text, err := os.ReadFile(filepath.Join(dir, "log"))
		return err == nil && strings.Contains(string(text), "did "+name+"\n")
	}
	r.shed.length = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	m := New(Options{Folder: filepath.Join(dir, "tasks"), Node: r.desk, Site: r.house, Workers: r.crew.workers, Now: func() (time.Time, bool) { return time.Now(), true }, Elsewhere: r.shed.of, AskElsewhere: r.desk.AskElsewhere})
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	never := func() bool { return false }
	if mistake := w.ask(m, never); mistake != "" {
		write("mistake %s", mistake)
	}
	for i, id := range w.ids {
		write("promised %d %s", i, id)
	}
	for left := 1; left > 0; {
		var mistake string
		if left, mistake = w.look(m, never); mistake != "" {
			write("mistake %s", mistake)
			break
		}
		r.desk.approve()
		for i, s := range w.states {
			write("state %d %s", i, s)
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	running.Wait()
	write("done")
	return true
}

// TestKill kills processes at random moments, and runs each folder's last to its end.
func TestKill(t *testing.T) {
	count := *kills
	if testing.Short() {
		count = 3
	}
	rounds := 0
	for killed := 0; killed < count; rounds++ {
		killed += killRound(t, rounds, count-killed)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills in %d rounds of %d tasks", count, rounds, maxLive)
}

// killRound kills at most so many processes over one folder, and returns how many.
func killRound(t *testing.T, seed, most int) (killed int) {
	dir := t.TempDir()
	ids := make(map[string]string)
	states := make(map[string]task.State)
	done := make(map[string]int)
	read, ended := 0, false
	for !ended {
		ctx, cancel := context.WithCancel(t.Context())
		if killed < most {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(5+rand.IntN(70))*time.Millisecond)
		}
		c := exec.CommandContext(ctx, os.Args[0]) // a kill -9 when ctx ends
		c.Env = append(os.Environ(), childFolder+"="+dir, childSeed+"="+strconv.Itoa(seed))
		out, err := c.CombinedOutput()
		late := ctx.Err() != nil
		cancel()
		if err != nil && !late {
			t.Fatalf("%v: %s", err, out)
		}
		if late {
			killed++
		}
		text, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil && !late {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(strings.NewReader(string(text)[read:]))
		read = len(text)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			name, value, _ := strings.Cut(rest, " ")
			switch word {
			case "mistake":
				t.Fatal(lines.Text())
			case "done":
				ended = true
			case "did":
				if done[rest]++; done[rest] > 1 {
					t.Errorf("%s was done %d times", rest, done[rest])
				}
			case "promised":
				if ids[name] != "" && ids[name] != value {
					t.Errorf("task %s was %s, and is %s", name, ids[name], value)
				}
				ids[name] = value
			case "state":
				if !reachable(states[name], task.State(value)) {
					t.Errorf("task %s was %s, and is %s", name, states[name], value)
				}
				states[name] = task.State(value)
			}
		}
	}
	w, d := newWorkload(rand.New(rand.NewPCG(uint64(seed), 1))), newDesk()
	for i := range w.ids {
		w.ids[i] = ids[fmt.Sprint(i)]
	}
	m := New(Options{Folder: filepath.Join(dir, "tasks"), Node: d, Site: newHouse(d), Workers: newCrew("a", "b", "c", "d").workers, Now: func() (time.Time, bool) { return time.Now(), true }})
	if mistake := w.judge(m, done); mistake != "" {
		t.Error(mistake)
	}
	return killed
}
