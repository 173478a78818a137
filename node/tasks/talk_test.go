package tasks

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// talker answers with the texts of the conversation so far. It writes for a minute.
type talker struct{ agent.Worker }

func (talker) Skills() []task.Skill { return []task.Skill{{ID: "talk"}} }

func (talker) Work(ctx context.Context, _ agents.Principal, _ agents.Site, w task.Work) (jsontext.Value, error) {
	talk := w.(task.Talk)
	before, err := talk.Earlier(ctx, 2)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, t := range before {
		words = append(words, t.Text)
	}
	talk.Write("let me think")
	time.Sleep(time.Minute)
	talk.Write(strings.Repeat("ä", maxPartial))
	time.Sleep(time.Minute)
	return json.Marshal(strings.Join(words, " "))
}

// TestTalk: an agent gets the last tasks of its asker's conversation, and nobody else's. A task
// without a context begins a conversation that its ID names. The agent's partial text is visible while it works, and is not stored.
func TestTalk(t *testing.T) {
	with(t, func(t *testing.T, r *rig) {
		r.crew.all[0].Worker = talker{}
		say := func(p agents.Principal, agent, conversation, text string) task.Task {
			got, err := r.Ask(t.Context(), p, task.Request{Agent: agent, Skill: map[string]string{"b": "rest"}[agent], Text: text, Context: conversation})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return got
		}
		end := func(p agents.Principal, id string) string {
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			return string(r.task(t, p, id).Result)
		}
		first := say(ann, "a", "c", "one")
		if got := r.task(t, ann, first.ID); got.Partial != "let me think" {
			t.Errorf("it shows %.40q", got.Partial)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.task(t, ann, first.ID); len(got.Partial) != maxPartial {
			t.Errorf("it shows %d bytes", len(got.Partial))
		}
		storing := make(chan int, 100) // the length of what is shown when the time of its end is asked
		r.asked.Store(new(func() {
			if r.Manager.mu.TryLock() {
				if j := r.live[first.ID]; j != nil {
					storing <- len(j.view().Partial)
				}
				r.Manager.mu.Unlock()
			}
		}))
		end(ann, first.ID)
		r.asked.Store(nil)
		close(storing)
		last := 0
		for last = range storing {
		}
		if last != maxPartial {
			t.Errorf("while its end is stored it shows %d bytes", last)
		}
		if got := r.task(t, ann, first.ID); got.Partial != "" || got.State != task.Completed {
			t.Errorf("%+v", got)
		}
		say(ann, "b", "c", "to another agent")
		for _, tt := range []struct {
			who                      agents.Principal
			conversation, text, want string
		}{
			{ann, "c", "two", `"one"`}, {bob, "c", "bob's", `""`}, {boss, "c", "the owner's", `""`}, {ann, "d", "elsewhere", `""`}, {ann, "", "alone", `""`},
			{ann, "c", "three", `"one two"`}, {ann, "c", "four", `"two three"`}, {bob, "c", "bob's again", `"bob's"`},
		} {
			if got := end(tt.who, say(tt.who, "a", tt.conversation, tt.text).ID); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
			}
		}
		alone := say(ann, "a", "", "first").ID
		end(ann, alone)
		for _, tt := range []struct {
			who        agents.Principal
			text, want string
		}{{ann, "second", `"first"`}, {bob, "bob's", `""`}, {ann, "third", `"first second"`}} {
			if got := end(tt.who, say(tt.who, "a", alone, tt.text).ID); got != tt.want {
				t.Errorf("after a task without a context, %s: %s, want %s", tt.text, got, tt.want)
			}
		}
		r.stop()
		r.start()
		if got := end(ann, say(ann, "a", "c", "five").ID); got != `"three four"` {
			t.Errorf("after a restart: %s", got)
		}
	})
}
