package llm

import (
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// maxAnswer bounds the words of an answer, and maxWhole all of it, in bytes.
const maxAnswer, maxWhole = 32 << 10, 60 << 10

// Answer is the result of a task.
type Answer struct {
	Text string `json:"text"` // the model's words
	// Receipt is what the site did for the task, by its own record: what is not here was not done,
	// whatever Text says.
	Receipt []Line `json:"receipt"`
	Foreign string `json:"foreign,omitzero"` // whose words the model had read; "" for only the asker's and the owner's
	Note    string `json:"note,omitzero"`    // what is wrong with the model's server; "" for nothing
}

// Line is a step of the site.
type Line struct {
	Time    string `json:"time"`
	Does    string `json:"does"`
	Outcome string `json:"outcome"` // "done", or a kind of fault
	Says    string `json:"says,omitzero"`
}

// answer is what the asker gets: the model's words, and what the site did.
func (r *run) answer(text string) Answer {
	a := Answer{Text: device.Clip(text, maxAnswer), Foreign: r.site.foreign, Note: r.note, Receipt: []Line{}}
	for _, s := range r.work.Task().Steps {
		a.Receipt = append(a.Receipt, Line{Time: s.Time, Does: s.Does, Outcome: s.Outcome, Says: s.Says})
	}
	for len(a.Text) > 0 { // in JSON it may be longer
		text, err := json.Marshal(a, json.Deterministic(true))
		if err != nil || len(text) <= maxWhole {
			break
		}
		a.Text = device.Clip(a.Text[:len(a.Text)/2], maxAnswer)
	}
	return a
}
