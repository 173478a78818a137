package hosting

import (
	"testing"
	"time"

	"agentsite/agents/routine"
	"agentsite/agents/task"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

const beds = `  beds: { kind: routine, may: set lamp, steps: [ { set: { lamp/relay: on }, for: 10s, wait: true } ] }
`

// moved returns the moves of a completed routine.
func (v *village) moved(site, id string) []*routine.Moved {
	v.Helper()
	got := v.task(site, id)
	var res routine.Result
	if err := json.Unmarshal(got.Result, &res); err != nil || got.State != task.Completed {
		v.Fatalf("%+v: %v", got, err)
	}
	return res.Moved
}

// TestQueuedRoutines: the second task of a routine waits while its output rests after the first.
func TestQueuedRoutines(t *testing.T) {
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		if err := v.configure("a", beds); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute) // outputs rest after a start
		first, second := v.ask("a", "beds"), v.ask("a", "beds")
		v.sleep(25 * time.Second)
		for _, id := range []string{first, second} {
			if m := v.moved("a", id); len(m) != 1 || m[0].Seconds != 10 || m[0].Ended != "" {
				v.Errorf("%+v", m[0])
			}
		}
	})
}

// TestCutRoutine: the result of a routine that the end of the site interrupted says so, and has the time
// of its move.
func TestCutRoutine(t *testing.T) {
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		if err := v.configure("a", beds); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		began := time.Now()
		id := v.ask("a", "beds")
		v.sleep(4 * time.Second)
		v.restart("a", time.Second)
		v.sleep(2 * time.Second)
		if m := v.moved("a", id); len(m) != 1 || m[0].Seconds >= 5 || m[0].Ended == "" || m[0].Time != began.UTC().Format("2006-01-02T15:04:05.000Z") {
			v.Errorf("%+v", m[0])
		}
	})
}

// TestPausedRoutine: after a pause the result has how long the output was held until then.
func TestPausedRoutine(t *testing.T) {
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		if err := v.configure("a", beds); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		id, manager := v.ask("a", "beds"), v.sites["a"].manager
		v.sleep(4 * time.Second)
		if err := manager.Pause("beds"); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		if err := manager.Resume("beds"); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Second)
		if m := v.moved("a", id); len(m) != 1 || m[0].Seconds != 4 || m[0].Ended == "" {
			v.Errorf("%+v", m[0])
		}
	})
}
