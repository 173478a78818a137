package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody      = 4 << 20   // of an answer
	maxEvent     = 256 << 10 // a line of it
	maxText      = 64 << 10
	maxCalls     = 16
	maxArguments = 64 << 10 // of all calls
	maxName      = 256
	sayInterval  = 200 * time.Millisecond
)

// lenient is how the JSON of servers is read: what is not known is ignored.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// event is an answer, or a part of one.
type event struct {
	Error   jsontext.Value `json:"error"`
	Choices []struct {
		Delta   *said          `json:"delta"`
		Message *said          `json:"message"`
		Finish  jsontext.Value `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
}

// said is what a model said. Servers differ in the types.
type said struct {
	Content jsontext.Value `json:"content"` // a text, null, or parts
	Refusal jsontext.Value `json:"refusal"`
	Calls   []struct {
		Index    jsontext.Value `json:"index"`
		ID       jsontext.Value `json:"id"`
		Function struct {
			Name      jsontext.Value `json:"name"`
			Arguments jsontext.Value `json:"arguments"` // a part of a text, or an object
		} `json:"function"`
	} `json:"tool_calls"`
}

// read reads an answer: a stream of events, or one object from a server that does not stream.
func read(res *http.Response, key string, alive func(), say func(string)) (Answer, error) {
	body := bufio.NewReaderSize(io.LimitReader(res.Body, maxBody+1), 4<<10)
	m := merger{say: say, key: key}
	total := 0
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "application/json" {
		text, err := readAll(body, alive)
		if err != nil {
			return Answer{}, err
		}
		if err := m.take(text); err != nil {
			return Answer{}, err
		}
		return m.answer(true)
	}
	for done := false; ; {
		line, err := readLine(body)
		if total += len(line) + 1; total > maxBody {
			return Answer{}, device.Faultf(device.Unavailable, "the model's server sends more than %d MiB for one answer", maxBody>>20)
		}
		alive()
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok { // other lines are comments and names
			data = bytes.TrimSpace(data)
			switch {
			case string(data) == "[DONE]":
				done = true
			case len(data) > 0:
				if err := m.take(data); err != nil {
					return Answer{}, err
				}
			}
		}
		if done || errors.Is(err, io.EOF) {
			return m.answer(done)
		}
		if err != nil {
			return Answer{}, cut(err)
		}
	}
}

func cut(err error) error {
	var fault *device.Fault
	if errors.As(err, &fault) {
		return err
	}
	return device.Faultf(device.Unavailable, "the model's answer was cut off: %w", err)
}

// readAll reads a whole answer.
func readAll(body *bufio.Reader, alive func()) (text []byte, err error) {
	for chunk := make([]byte, 16<<10); ; {
		n, err := body.Read(chunk)
		alive()
		if text = append(text, chunk[:n]...); len(text) > maxBody {
			return nil, device.Faultf(device.Unavailable, "the model's server sends more than %d MiB for one answer", maxBody>>20)
		}
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, cut(err)
		}
	}
}

// readLine reads a line of bounded length, without its end. Its error may come with a last line.
func readLine(body *bufio.Reader) (line []byte, err error) {
	for {
		part, err := body.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxEvent {
			return nil, device.Faultf(device.Unavailable, "the model's server sends an event of more than %d KiB", maxEvent>>10)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

// merger puts the parts of an answer together.
type merger struct {
	say   func(string)
	key   string // of the server, which no error has
	told  time.Time
	out   Answer
	text  strings.Builder
	calls []*part
	size  int // of all arguments
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
	var e event
	if err := json.Unmarshal(text, &e, lenient); err != nil {
		return device.Faultf(device.Unavailable, "the model's server sends what is no chat completion: %s", quote(string(text), m.key))
	}
	if len(e.Error) > 0 && e.Error.Kind() != 'n' {
		return device.Faultf(device.Unavailable, "the model's server fails: %s", errorText(text, m.key))
	}
	m.usage(e.Usage)
	if len(e.Choices) == 0 {
		return nil
	}
	c := e.Choices[0]
	if finish := textOf(c.Finish); finish != "" {
		m.out.Finish = device.Clip(finish, 40)
	}
	for _, s := range []*said{c.Delta, c.Message} {
		if s == nil {
			continue
		}
		if refusal := textOf(s.Refusal); refusal != "" && len(m.out.Refused) < 1000 {
			m.out.Refused += device.Clip(refusal, 200)
		}
		if err := m.add(s); err != nil {
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
func (m *merger) add(s *said) error {
	m.text.WriteString(contentOf(s.Content))
	if m.text.Len() > maxText {
		return device.Faultf(device.Unavailable, "the model answers more than %d KiB", maxText>>10)
	}
	for _, c := range s.Calls {
		p := m.of(string(c.Index), device.Clip(textOf(c.ID), maxName), device.Clip(textOf(c.Function.Name), maxName))
		if p == nil {
			return device.Faultf(device.Unavailable, "the model makes more than %d calls at a time", maxCalls)
		}
		args := []byte(c.Function.Arguments)
		switch c.Function.Arguments.Kind() {
		case '"':
			args = []byte(textOf(c.Function.Arguments))
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
func (m *merger) usage(v jsontext.Value) {
	var u struct {
		Prompt *float64 `json:"prompt_tokens"`
		Answer *float64 `json:"completion_tokens"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &u, lenient) != nil || u.Prompt == nil || u.Answer == nil {
		return
	}
	whole := func(n float64) int { return int(min(max(n, 0), 1<<28)) }
	m.out.Usage = Usage{whole(*u.Prompt), whole(*u.Answer), true}
}

// answer returns the whole answer, once the stream has ended: as it should, or where the model said
// that it was finished.
func (m *merger) answer(ended bool) (Answer, error) {
	if !ended && m.out.Finish == "" {
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

// textOf returns a JSON text; "" for anything else.
func textOf(v jsontext.Value) (text string) {
	if v.Kind() == '"' {
		json.Unmarshal(v, &text, lenient)
	}
	return text
}

// contentOf returns the text of a content: a text, or parts with texts.
func contentOf(v jsontext.Value) string {
	if v.Kind() != '[' {
		return textOf(v)
	}
	var parts []struct {
		Text jsontext.Value `json:"text"`
	}
	if json.Unmarshal(v, &parts, lenient) != nil {
		return ""
	}
	all := ""
	for _, p := range parts {
		all += textOf(p.Text)
	}
	return all
}
