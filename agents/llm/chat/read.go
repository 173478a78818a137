package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody      = 4 << 20   // of an answer
	maxEvent     = 256 << 10 // a line of it
	maxText      = 64 << 10
	maxCalls     = 16
	maxArguments = 64 << 10 // of all calls
	maxName      = 256
	maxTokens    = 1 << 28 // that a server reports
	sayInterval  = 200 * time.Millisecond
)

// merger puts the parts of an answer together.
type merger struct {
	body  io.Reader
	came  int    // bytes of it
	alive func() // is called whenever some came
	say   func(string)
	key   string // of the server, which no error has
	told  time.Time
	out   Answer
	text  strings.Builder
	calls []*part
	size  int // of all arguments
}

// Read implements io.Reader: the body of the answer, which is bounded.
func (m *merger) Read(p []byte) (n int, err error) {
	n, err = m.body.Read(p)
	if n > 0 {
		m.alive()
	}
	if m.came += n; m.came > maxBody {
		return 0, device.Faultf(device.Unavailable, "the model's server sends more than %d MiB for one answer", maxBody>>20)
	}
	return n, err
}

// read reads an answer: a stream of events, or one object from a server that does not stream.
func (m *merger) read(whole bool) (Answer, error) {
	if whole {
		text, err := io.ReadAll(m)
		if err == nil {
			err = m.take(text)
		}
		return m.answer(true, err)
	}
	lines := bufio.NewScanner(m)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case !ok || len(data) == 0: // comments and names
		case string(data) == "[DONE]":
			return m.answer(true, nil)
		default:
			if err := m.take(data); err != nil {
				return m.answer(false, err)
			}
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = device.Faultf(device.Unavailable, "the model's server sends an event of more than %d KiB", maxEvent>>10)
	}
	return m.answer(false, err)
}

// part is a call as far as it has come.
type part struct {
	index, id, name string
	args            []byte
	depth           int
	inText, escaped bool
	whole           bool // the object has ended
}

// add adds a piece of the arguments. Whether they are whole is counted on, as to parse them again
// with each piece takes minutes for a hostile answer.
func (p *part) add(args []byte) {
	p.args = append(p.args, args...)
	for _, b := range args {
		switch {
		case p.escaped:
			p.escaped = false
		case p.inText:
			p.escaped, p.inText = b == '\\', b != '"'
		case b == '"':
			p.inText = true
		case b == '{' || b == '[':
			p.depth++
		case b == '}' || b == ']':
			p.depth--
			p.whole = p.depth == 0
		}
	}
}

// take takes an event.
func (m *merger) take(text []byte) error {
	e := Fields(text)
	if e == nil {
		return device.Faultf(device.Unavailable, "the model's server sends what is no chat completion: %s", quote(string(text), m.key))
	}
	if v := e["error"]; len(v) > 0 && v.Kind() != 'n' {
		return device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(text, m.key))
	}
	m.usage(Fields(e["usage"]))
	choices := Elements(e["choices"])
	if len(choices) == 0 {
		return nil
	}
	c := Fields(choices[0])
	if finish := Text(c["finish_reason"]); finish != "" {
		m.out.Finish = device.Clip(finish, 40)
	}
	for _, part := range [...]string{"delta", "message"} {
		if err := m.add(Fields(c[part])); err != nil {
			return err
		}
	}
	if m.say != nil && time.Since(m.told) >= sayInterval {
		if text, ok := spoken(m.text.String()); ok && text != "" {
			m.told = time.Now()
			m.say(text)
		}
	}
	return nil
}

// add adds what a model said.
func (m *merger) add(said map[string]jsontext.Value) error {
	if len(m.out.Refused) < 1000 {
		m.out.Refused += device.Clip(Text(said["refusal"]), 200)
	}
	m.text.WriteString(Text(said["content"]))
	for _, p := range Elements(said["content"]) { // some send it in parts
		m.text.WriteString(Text(Fields(p)["text"]))
	}
	if m.text.Len() > maxText {
		return device.Faultf(device.Unavailable, "the model answers more than %d KiB", maxText>>10)
	}
	for _, v := range Elements(said["tool_calls"]) {
		c := Fields(v)
		f := Fields(c["function"])
		p := m.of(string(c["index"]), name(c["id"]), name(f["name"]))
		if p == nil {
			return device.Faultf(device.Unavailable, "the model makes more than %d calls at a time", maxCalls)
		}
		args := []byte(f["arguments"]) // a part of a text, or an object
		switch f["arguments"].Kind() {
		case '"':
			args = []byte(Text(args))
		case 'n':
			args = nil
		}
		if m.size += len(args); m.size > maxArguments {
			return device.Faultf(device.Unavailable, "the arguments of the model's calls are more than %d KiB", maxArguments>>10)
		}
		p.add(args)
	}
	return nil
}

// name returns a name or an ID.
func name(v jsontext.Value) string { return device.Clip(Text(v), maxName) }

// of returns the call that a part belongs to: that with its ID, or the last one with its index. A
// new ID is a new call, also at the index of another, and so is another name, or a name after whole
// arguments, where its index is another or it has no ID. It is nil where there are too many.
func (m *merger) of(index, id, name string) *part {
	var at *part
	for _, p := range m.calls {
		if id != "" && p.id == id || id == "" && p.index == index {
			at = p
		} else if id != "" && p.index == index && p.id == "" && p.name == name { // its ID comes late
			at = p
		}
	}
	if id == "" && at == nil && name == "" && len(m.calls) > 0 {
		at = m.calls[len(m.calls)-1]
	}
	if at != nil && (id == "" || at.index != index) && name != "" && at.name != "" && (at.whole || name != at.name) {
		at = nil
	}
	if at == nil {
		if len(m.calls) == maxCalls {
			return nil
		}
		at = &part{index: index}
		m.calls = append(m.calls, at)
	}
	if at.id == "" {
		at.id = id
	}
	if at.name == "" {
		at.name = name
	}
	return at
}

// usage takes what a server says about tokens; the last word counts.
func (m *merger) usage(says map[string]jsontext.Value) {
	prompt, err := strconv.ParseFloat(string(says["prompt_tokens"]), 64)
	answer, wrong := strconv.ParseFloat(string(says["completion_tokens"]), 64)
	if err == nil && wrong == nil {
		m.out.Usage = Usage{int(min(max(prompt, 0), maxTokens)), int(min(max(answer, 0), maxTokens)), true}
	}
}

// answer returns the whole answer, once the stream has ended: as it should, or where the model said
// that it was finished.
func (m *merger) answer(ended bool, err error) (Answer, error) {
	var fault *device.Fault
	switch {
	case errors.As(err, &fault):
		return Answer{}, err
	case err != nil:
		return Answer{}, device.Faultf(device.Unavailable, "the model's answer was cut off: %w", err)
	case !ended && m.out.Finish == "":
		return Answer{}, device.Faultf(device.Unavailable, "the model's answer was cut off in the middle")
	}
	a := m.out
	a.Text, _ = spoken(m.text.String())
	a.Text = strings.ToValidUTF8(strings.TrimSpace(a.Text), "\ufffd")
	used := make(map[string]bool)
	for i, p := range m.calls {
		c := Call{ID: p.id, Name: p.name}
		if c.ID == "" || used[c.ID] {
			for n := i + 1; c.ID == "" || used[c.ID]; n++ {
				c.ID = "call_" + strconv.Itoa(n)
			}
		}
		used[c.ID] = true
		args := jsontext.Value(bytes.TrimSpace(p.args))
		switch {
		case len(args) == 0:
			c.Arguments = jsontext.Value("{}")
		case args.IsValid() && args.Kind() == '{':
			c.Arguments = args
		default:
			c.Broken = device.Clip(string(args), 300)
		}
		a.Calls = append(a.Calls, c)
	}
	if a.Finish == "content_filter" && a.Refused == "" {
		a.Refused = "the server filtered the answer"
	}
	if m.say != nil && a.Text != "" {
		m.say(a.Text)
	}
	return a, nil
}

// spoken returns a text without what the model thought before; false while it thinks.
func spoken(text string) (string, bool) {
	const begin, end = "<think>", "</think>"
	rest := strings.TrimLeft(text, " \n\t")
	if !strings.HasPrefix(rest, begin) {
		return text, len(rest) >= len(begin) || !strings.HasPrefix(begin, rest)
	}
	_, after, ok := strings.Cut(rest, end)
	return after, ok
}
