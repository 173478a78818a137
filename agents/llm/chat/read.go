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
	maxName      = 256      // of a tool
	maxTokens    = 1 << 28  // that a server reports
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
	size  int // of all arguments and IDs

	extra     extras // of the message
	extraSize int    // of all that is echoed
	spelling  map[string]string
	events    int    // that had a choice
	reason    string // what an event without one says
	other     []byte // the lines that are no event
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

// read reads an answer: a stream of events or of JSON lines, or one object from a server that does not
// stream. The content decides, because the media types of servers do not.
func (m *merger) read() (Answer, error) {
	in := bufio.NewReader(m)
	var first byte
	var err error
	for err == nil && strings.IndexByte(" \t\r\n\xef\xbb\xbf\x00", first) >= 0 {
		first, err = in.ReadByte()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return m.answer(false, err)
	}
	in.UnreadByte()
	switch {
	case first == '<':
		page, _ := io.ReadAll(io.LimitReader(in, maxError))
		return m.answer(false, device.Faultf(device.Unavailable, "the model's server sends no chat completion: %s", errorText(page, m.key)))
	case first == '{' || first == '[':
		text, err := io.ReadAll(in)
		if err != nil {
			return m.answer(false, err)
		}
		if jsontext.Value(text).IsValid(lenient) {
			return m.answer(true, m.take(text))
		}
		in.Reset(bytes.NewReader(text))
	}
	return m.readLines(in)
}

// readLines reads a stream.
func (m *merger) readLines(in io.Reader) (Answer, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEvent)
	failed := false
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		field, data, _ := bytes.Cut(line, []byte(":"))
		if data = bytes.TrimSpace(data); len(line) > 0 && line[0] == '{' && Fields(line) != nil {
			field, data = []byte("data"), line
		}
		switch string(field) {
		case "", "id", "retry": // comments, too
		case "event":
			failed = string(data) == "error"
		case "error": // of llama.cpp
			return m.answer(false, device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(data, m.key)))
		case "data":
			switch {
			case string(data) == "[DONE]":
				return m.answer(true, nil)
			case failed:
				return m.answer(false, device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(data, m.key)))
			case len(data) > 0:
				if err := m.take(data); err != nil {
					return m.answer(false, err)
				}
			}
		default:
			if len(m.other) < maxError {
				m.other = append(append(m.other, line...), '\n')
			}
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = device.Faultf(device.Unavailable, "the model's server sends an event of more than %d KiB", maxEvent>>10)
	}
	return m.answer(false, err)
}

// take takes an event.
func (m *merger) take(text []byte) error {
	e := Fields(text)
	if e == nil {
		return device.Faultf(device.Unavailable, "the model's server sends no chat completion: %s", errorText(text, m.key))
	}
	if !isNothing(e["error"]) && string(e["error"]) != "false" {
		return device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(text, m.key))
	}
	m.usage(Fields(e["usage"]))
	choices := Elements(e["choices"])
	if len(choices) == 0 {
		if text := said(text, 0); text != "" {
			m.reason = quote(text, m.key)
		}
		return nil
	}
	m.events++
	c := Fields(choices[0])
	if !isNothing(c["error"]) {
		return device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(choices[0], m.key))
	}
	if finish := Text(c["finish_reason"]); finish != "" {
		m.out.Finish = device.Clip(finish, 40)
	}
	for _, spelling := range [...]string{"delta", "message"} {
		message := Fields(c[spelling])
		for name, v := range message {
			if !m.choose(name, spelling, v) {
				delete(message, name)
			}
		}
		if err := m.add(message); err != nil {
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

// choose reports whether a member counts: some servers send it twice, in the parts of delta and as the
// message so far. That which says something first does.
func (m *merger) choose(name, spelling string, v jsontext.Value) bool {
	if m.spelling[name] != "" || isNothing(v) {
		return m.spelling[name] == "" || m.spelling[name] == spelling
	}
	if m.spelling == nil {
		m.spelling = make(map[string]string)
	}
	if len(m.spelling) == 2*maxExtraNames {
		return false
	}
	m.spelling[name] = spelling
	return true
}

// add adds what a model said.
func (m *merger) add(message map[string]jsontext.Value) error {
	if len(m.out.Refused) < 1000 {
		m.out.Refused += device.Clip(Text(message["refusal"]), 200)
	}
	m.text.WriteString(Text(message["content"]))
	for _, p := range Elements(message["content"]) { // some send it in parts
		m.text.WriteString(Text(Fields(p)["text"]))
	}
	if m.text.Len() > maxText {
		return device.Faultf(device.Unavailable, "the model answers more than %d KiB", maxText>>10)
	}
	for _, v := range Elements(message["tool_calls"]) {
		if err := m.addCall(v); err != nil {
			return err
		}
	}
	for name, v := range message {
		switch name {
		case "role", "content", "refusal", "tool_calls", "function_call": // the last is another spelling
		default:
			if m.extra == nil {
				m.extra = make(extras)
			}
			m.addExtra(m.extra, name, v, true)
		}
	}
	return nil
}

// addExtra adds a member that is echoed. Where there is no room for all, none is.
func (m *merger) addExtra(to extras, name string, v jsontext.Value, grows bool) {
	if m.extraSize += len(name) + len(v); m.extraSize <= maxExtra && !to.add(name, v, grows, 0) {
		m.extraSize = maxExtra + 1
	}
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
	case !ended && m.events == 0 && m.reason == "":
		return Answer{}, device.Faultf(device.Unavailable, "the model's server sends no chat completion: %s", errorText(m.other, m.key))
	case !ended && m.out.Finish == "" && len(m.other) > 0:
		return Answer{}, device.Faultf(device.Unavailable, "the model's answer was cut off in the middle; its server says %s", errorText(m.other, m.key))
	case !ended && m.out.Finish == "" && m.reason == "":
		return Answer{}, device.Faultf(device.Unavailable, "the model's answer was cut off in the middle")
	}
	a := m.out
	a.Text, _ = spoken(m.text.String())
	a.Text = strings.ToValidUTF8(strings.TrimSpace(a.Text), "\ufffd")
	if a.Calls, err = m.made(); err != nil {
		return Answer{}, err
	}
	if m.extraSize <= maxExtra {
		a.Extra = m.extra.values()
	}
	if a.Finish == "content_filter" && a.Refused == "" {
		a.Refused = "the server filtered the answer"
	}
	if a.Text == "" && len(a.Calls) == 0 && a.Refused == "" {
		return Answer{}, m.empty()
	}
	if m.say != nil && a.Text != "" {
		m.say(a.Text)
	}
	return a, nil
}

// empty returns why a model answered nothing.
func (m *merger) empty() error {
	why := "its server does not say why"
	switch {
	case m.reason != "":
		why = "its server says " + m.reason
	case len(m.other) > 0:
		why = "its server says " + errorText(m.other, m.key)
	case m.out.Finish == "length":
		why = "all its tokens were used up before; raise model.answer, or have it think less"
	case m.text.Len() > 0 || len(m.extra) > 0:
		why = "it only thought"
	}
	return device.Faultf(device.Unavailable, "the model gave no answer: %s", why)
}

// thoughts are the marks around what models think.
var thoughts = [...]struct{ begin, end string }{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"}, {"[THINK]", "[/THINK]"}}

// spoken returns a text without what the model thought before; false while it thinks. The mark at the
// beginning may be missing: some servers have it in the prompt.
func spoken(text string) (string, bool) {
	for first := true; ; first = false {
		rest := strings.TrimLeft(text, " \n\t")
		open, next := false, -1
		for _, mark := range &thoughts {
			open = open || len(rest) < len(mark.begin) && strings.HasPrefix(mark.begin, rest)
			begin, end := strings.Index(text, mark.begin), strings.Index(text, mark.end)
			if strings.HasPrefix(rest, mark.begin) {
				if end < 0 {
					return "", false
				}
				next = end + len(mark.end)
			} else if first && end >= 0 && (begin < 0 || begin > end) {
				next = end + len(mark.end)
			}
		}
		if next < 0 {
			return text, !open
		}
		text = text[next:]
	}
}
