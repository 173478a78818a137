package hosting

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/transport/rpc"
)

// TestAskRandom: agents, tasks, links and sites are paused, changed, canceled, cut off and
// restarted in any order. Each task of the other site is asked for and made once, and everything
// ends.
func TestAskRandom(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 1
	}
	completed := 0
	for seed := range seeds {
		in(t, rpc.CBOR, []string{"a", "b"}, func(v *village) { completed += v.live(seed) })
	}
	if completed == 0 {
		t.Error("nothing was ever completed")
	}
}

// asks notes the tasks of a site by the task of another site that asked for each. Some of its answers
// are lost.
type asks struct {
	task.Host
	*asked
}

type asked struct {
	mu    sync.Mutex
	r     *rand.Rand
	by    map[string]string
	again string // the asking task whose request made two tasks
}

func (a asks) Ask(ctx context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	t, err := a.Host.Ask(ctx, p, r)
	if err != nil || r.Key == nil {
		return t, err
	}
	if a.note(*r.Key, t.ID) {
		<-ctx.Done()
		return t, ctx.Err()
	}
	return t, nil
}

// note notes a task, and reports whether its answer is lost.
func (a asks) note(key, id string) bool {
	asker := strings.Join(strings.SplitN(key, "/", 3)[:2], "/") // task/ID
	a.mu.Lock()
	defer a.mu.Unlock()
	if before := a.by[asker]; before != "" && before != id {
		a.again = asker
	}
	a.by[asker] = id
	return a.r.IntN(3) == 0
}

// live has site a ask b for tasks while random things happen to both, and returns how many were
// completed.
func (v *village) live(seed uint64) (completed int) {
	r := rand.New(rand.NewPCG(seed, 0))
	a, b := v.sites["a"], v.sites["b"]
	noted := &asked{r: rand.New(rand.NewPCG(seed, 1)), by: make(map[string]string)}
	b.lies = func(h task.Host) task.Host { return asks{h, noted} }
	v.restart("b", 0)
	v.pair("ask tidy")
	var ids []string
	count := 0
	paused := make(map[string]bool)
	toggle := func(s *site, name string) {
		if paused[name] = !paused[name]; paused[name] {
			s.manager.Pause(name)
		} else {
			s.manager.Resume(name)
		}
	}
	cut, silent, changed := false, false, false
	for range 40 {
		switch r.IntN(14) {
		case 0, 1, 2, 3:
			if t, err := a.tasks.Ask(v.ctx, here, task.Request{Agent: "sweep"}); err == nil {
				ids = append(ids, t.ID)
				count++
			}
		case 4, 5:
			if len(ids) > 0 {
				id := ids[r.IntN(len(ids))]
				tasks := a.tasks
				go tasks.Cancel(v.ctx, here, id)
			}
		case 6:
			toggle(a, "sweep")
		case 7:
			toggle(a, "b")
		case 8:
			cut = !cut
			b.hang(cut)
		case 9:
			silent = !silent
			b.hush(silent)
		case 10:
			v.restart("a", time.Duration(r.IntN(60))*time.Second)
			clear(paused)
		case 11:
			v.restart("b", time.Duration(r.IntN(60))*time.Second)
			cut, paused["tidy"] = false, false
		case 12:
			text := sweep
			if changed = !changed; changed {
				text = strings.ReplaceAll(text, "within: 10m", "within: 9m")
			}
			if err := v.configure("a", text); err != nil {
				v.Fatal(err)
			}
		case 13:
			toggle(b, "tidy")
		}
		v.sleep([...]time.Duration{0, time.Second, 30 * time.Second, 2 * time.Minute}[r.IntN(4)])
	}
	b.hang(false)
	b.hush(false)
	for _, name := range []string{"sweep", "b", "tidy"} {
		s := a
		if name == "tidy" {
			s = b
		}
		s.manager.Resume(name)
	}
	v.sleep(90 * time.Minute)
	there := 0
	for _, s := range []*site{a, b} {
		all, err := s.tasks.List(v.ctx, here)
		if err != nil {
			v.Fatal(err)
		}
		for _, t := range all {
			switch {
			case !t.State.Ended():
				v.Errorf("seed %d: %s goes on: %+v", seed, s.dir, t)
			case t.State == task.Completed && s == a:
				completed++
			case t.State == task.Completed:
				there++
			}
		}
	}
	if n := v.count("b"); n > count || completed > there {
		v.Errorf("seed %d: of %d tasks that asked %d are completed; there are %d, and %d are", seed, count, completed, n, there)
	}
	var keys []string
	for _, m := range b.book.moves() {
		if key := string(m.Key); slices.Contains(keys, key) {
			v.Errorf("seed %d: it was moved twice by %s", seed, key)
		} else {
			keys = append(keys, key)
		}
	}
	if len(keys) > v.count("b") || b.on("lamp/relay") {
		v.Errorf("seed %d: %d moves for %d tasks; it is on: %t", seed, len(keys), v.count("b"), b.on("lamp/relay"))
	}
	if noted.again != "" {
		v.Errorf("seed %d: %s asked for two tasks", seed, noted.again)
	}
	return completed
}
