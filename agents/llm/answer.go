package llm

import (
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// maxAnswer bounds the words of an answer, and maxWhole all of it, in bytes.
const maxAnswer, maxWhole = 32 << 10, 60 << 10

// Answer is the result of a task.
type Answer struct {
	Text string `json:"text"` // the model's words
	// Receipt has the steps that the site recorded for the task, without results. A step that it lacks
	// was not made, whatever Text says.
	Receipt []task.Step `json:"receipt"`
	Foreign string      `json:"foreign,omitzero"` // whose words the model had read; "" for only the asker's and the owner's
	Note    string      `json:"note,omitzero"`    // what is wrong with the model's server; "" for nothing
}

// answer returns what the asker gets, as JSON: the model's words, and what the site did.
func (r *run) answer(text string) ([]byte, error) {
	a := Answer{device.Clip(text, maxAnswer), r.work.Task().Steps, r.site.foreign, r.note}
	for i := range a.Receipt {
		a.Receipt[i].Result = nil
	}
	for { // in JSON it may be longer
		whole, err := json.Marshal(a, json.Deterministic(true))
		if err != nil || len(whole) <= maxWhole || a.Text == "" {
			return whole, err
		}
		a.Text = device.Clip(a.Text[:len(a.Text)/2], maxAnswer)
	}
}
