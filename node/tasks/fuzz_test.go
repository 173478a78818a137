package tasks

import (
	"bytes"
	"errors"
	"testing"

	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
)

// FuzzTaskFile: decoding a file returns its task or a known error. The result can be shown, and
// decoded again from the intact part. No cut makes it another task.
func FuzzTaskFile(f *testing.F) {
	id := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	all := []entry{
		{Kind: kindAsked, At: 1, Left: 60_000, ID: id, Agent: "a", Skill: "run", Arguments: []byte(`{"n":1}`), Asker: "ann", Account: "ann", Via: []string{"x"}, Definition: []byte{1}, Order: 1},
		{Kind: kindState, At: 2, State: string(task.Working)},
		{Kind: kindIntent, At: 3, Step: 1, Says: "set a/b to on"},
		{Kind: kindApproval, At: 4, Step: 1, Question: "approval", Says: "approve it"},
		{Kind: kindIntent, At: 5, Step: 1, Says: "set a/b to on"},
		{Kind: kindResult, At: 6, Step: 1, Fault: outcomeDone, Result: []byte(`{"output":"a/b"}`)},
		{Kind: kindIntent, At: 6, Step: 2, Says: "ask shed/tidy"},
		{Kind: kindFar, At: 6, Step: 2, Far: "shed"},
		{Kind: kindFar, At: 6, Step: 2, Far: "shed/"},
		{Kind: kindFar, At: 6, Step: 2, Far: "shed/" + id},
		{Kind: kindResult, At: 6, Step: 2, Fault: outcomeDone},
		{Kind: kindQuestion, At: 7, Question: "1", Text: "well?", Options: []string{"yes", "no"}},
		{Kind: kindAnswer, At: 8, Question: "1", Text: "yes", Asker: "ann"},
		{Kind: kindState, At: 9, State: string(task.Completed), Result: []byte(`{}`)},
	}
	file := []byte(magic)
	for i := range all {
		var err error
		if file, err = appendFrame(file, &all[i]); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(file), uint16(len(file)-3))
	}
	if r, good, err := decode(file); err != nil || good != len(file) || r.state != task.Completed || len(r.steps) != 2 || r.far != "" {
		f.Fatalf("%+v %v", r, err)
	}
	f.Add([]byte("agentsite task 2\nx"), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		r, good, err := decode(b)
		if err != nil && err != errTorn && err != errNewer && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		if good > len(b) || len(r.steps) > maxSteps || err == nil && (r.state == "" || !isID(r.asked.ID) || r.asked.Asker == "") {
			t.Fatalf("%d of %d: %+v", good, len(b), r)
		}
		if _, err := json.Marshal(r.whole()); err != nil {
			t.Fatalf("it cannot be shown: %v", err)
		}
		if err != nil {
			return
		}
		if again, size, err := decode(b[:good]); err != nil || size != good || again.state != r.state || len(again.steps) != len(r.steps) {
			t.Fatalf("read again: %+v %v", again, err)
		}
		if at := int(cut); at < good { // as after a crash
			before, size, err := decode(b[:at])
			if err != nil && err != errTorn || size > at || err == nil && before.asked.ID != r.asked.ID {
				t.Fatalf("cut at %d: %+v %v", at, before, err)
			}
		}
	})
}

// FuzzTaskName: a name of a file is one of ours in one form, or none.
func FuzzTaskName(f *testing.F) {
	f.Add("ABCDEFGHIJKLMNOPQRSTUVWXYZ.task")
	f.Add("1700000000-0123abcd-0123abcd-ABCDEFGHIJKLMNOPQRSTUVWXYZ.completed")
	f.Fuzz(func(t *testing.T, name string) {
		live, e, ok := parseName(name)
		if ok && live == "" && e.String() != name && e.String() != trimZero(name) || ok && live != "" && live+liveSuffix != name {
			t.Fatalf("%q is %q %q", name, live, e)
		}
	})
}

// trimZero is a name without leading zeros of its time.
func trimZero(name string) string {
	for len(name) > 1 && name[0] == '0' && name[1] != '-' {
		name = name[1:]
	}
	return name
}
