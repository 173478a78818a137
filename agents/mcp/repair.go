package mcp

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"strings"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// repair returns a line of a child as a JSON object that any decoder reads in the same way: in UTF-8
// without half characters, which become U+FFFD, with null for NaN and Infinity, with no name twice in
// an object, and at most maxDepth deep. An error is for a line that is not one.
func repair(line []byte) (jsontext.Value, error) {
	if !isObject(line) {
		return nil, errors.New("it is no JSON object")
	}
	line = withoutNaN(line)
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true))
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true))
	for {
		t, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return bytes.TrimSpace(out.Bytes()), nil
		case err != nil:
			return nil, errors.New("it is not valid JSON")
		case d.StackDepth() > maxDepth:
			return nil, errors.New("it is nested too deep")
		case d.StackDepth() == 0 && len(bytes.TrimSpace(line[d.InputOffset():])) > 0:
			return nil, errors.New("it has more than one value")
		}
		if t.Kind() == '"' {
			t = jsontext.String(strings.ToValidUTF8(t.String(), "\ufffd"))
		}
		if err := e.WriteToken(t); err != nil {
			return nil, errors.New("it is not valid JSON")
		}
	}
}

func isObject(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) }

// withoutNaN writes null for NaN and Infinity, which Python sends for numbers.
func withoutNaN(line []byte) []byte {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line
	}
	out := make([]byte, 0, len(line))
	inText := false
	for i := 0; i < len(line); i++ {
		if inText {
			if inText = line[i] != '"'; line[i] == '\\' && i+1 < len(line) {
				out = append(out, line[i])
				i++
			}
			out = append(out, line[i])
			continue
		}
		n := 0
		for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
			if bytes.HasPrefix(line[i:], []byte(word)) {
				n = len(word)
			}
		}
		if n > 0 {
			out = append(out, "null"...)
			i += n - 1
			continue
		}
		inText = line[i] == '"'
		out = append(out, line[i])
	}
	return out
}

// answered returns the ID of the request that a broken line answers, which is mostly at its beginning;
// false for none.
func answered(line []byte) (id jsonrpc.ID, ok bool) {
	if !isObject(line) {
		return id, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	d.ReadToken()
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return id, false
		}
		switch name.String() {
		case "method": // its own, with an ID of its own
			return id, false
		case "id":
			v, err := d.ReadValue()
			if err != nil {
				return id, false
			}
			return idOf(v)
		}
		if d.SkipValue() != nil {
			return id, false
		}
	}
}

// idOf returns an ID of ours, which is a number. Some children send it as a text.
func idOf(v jsontext.Value) (id jsonrpc.ID, ok bool) {
	var n float64
	if v.Kind() != '0' && v.Kind() != '"' || json.Unmarshal(v, &n, json.StringifyNumbers(v.Kind() == '"')) != nil {
		return id, false
	}
	id, err := jsonrpc.MakeID(n)
	return id, err == nil
}

// broken is an answer that cannot be read.
func broken(id jsonrpc.ID, why error) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: &unreadable{why.Error()}}
}

// unreadable is the error of a call that was answered with what cannot be read.
type unreadable struct{ says string }

func (e *unreadable) Error() string { return e.says }

// message decodes a repaired line.
func message(text jsontext.Value) (jsonrpc.Message, error) {
	var f map[string]jsontext.Value
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	id, ours := idOf(f["id"])
	if f["method"] == nil && ours && (f["result"] != nil || f["error"] != nil) {
		r := &jsonrpc.Response{ID: id}
		if e := f["error"]; e != nil && e.Kind() != 'n' {
			refused := new(jsonrpc.Error)
			if json.Unmarshal(e, refused) != nil { // a text, or something else
				refused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: string(e)}
			}
			r.Error = refused
			return r, nil
		}
		result, err := toolResult(f["result"])
		if err != nil {
			r.Error = err
			return r, nil
		}
		r.Result = stdjson.RawMessage(result)
		return r, nil
	}
	return jsonrpc.DecodeMessage(text)
}

// toolResult returns the result of a tool as the SDK reads it, and another result as it is. What is
// not known in its content is named instead. The error is a fault.
func toolResult(result jsontext.Value) (jsontext.Value, error) {
	var f map[string]jsontext.Value
	if json.Unmarshal(result, &f) != nil {
		return nil, &unreadable{"its result is no JSON object"}
	}
	switch kind := textOf(f["resultType"]); kind {
	case "", "complete":
	case "input_required":
		return nil, device.Faultf(device.Denied, "it asks its caller something, and is not answered: nothing goes from a caller to a child beside arguments")
	case "task":
		return nil, device.Faultf(device.UnknownOutcome, "it goes on with the call as a task, although it was not asked to; whether it does what was asked is not known")
	default:
		return nil, device.Faultf(device.UnknownOutcome, "it answers with a result of the type %.40q, which is not known; whether it did what was asked is not known", kind)
	}
	if f["content"] == nil && f["isError"] == nil {
		if f["ttlMs"] == nil {
			return result, nil
		}
		delete(f, "ttlMs") // for which the SDK would answer with an old list
		return json.Marshal(f, json.Deterministic(true))
	}
	var parts []jsontext.Value
	switch c := f["content"]; c.Kind() {
	case '[':
		if json.Unmarshal(c, &parts) != nil {
			return nil, &unreadable{"its content is no list"}
		}
	case '"', '{':
		parts = []jsontext.Value{c}
	}
	if len(parts) > maxParts {
		return nil, device.Faultf(device.Invalid, "it did it, but its answer has %d parts and is not passed on; at most %d are: ask for less", len(parts), maxParts)
	}
	for i, part := range parts {
		known, err := knownPart(part)
		if err != nil {
			return nil, err
		}
		parts[i] = known
	}
	f["content"], _ = json.Marshal(append([]jsontext.Value{}, parts...))
	if is := f["isError"]; is != nil {
		f["isError"] = jsontext.Value("false")
		if says := strings.ToLower(strings.Trim(string(is), `"`)); says == "true" || says == "1" || says == "yes" {
			f["isError"] = jsontext.Value("true")
		}
	}
	return json.Marshal(f, json.Deterministic(true))
}

// knownPart returns a part of a content that the SDK reads: the part, or a text that says what it is.
func knownPart(part jsontext.Value) (jsontext.Value, error) {
	var f struct {
		Type jsontext.Value `json:"type"`
		Text jsontext.Value `json:"text"`
	}
	asText := func(says string) (jsontext.Value, error) {
		return json.Marshal(map[string]string{"type": "text", "text": says}, json.Deterministic(true))
	}
	if part.Kind() == '"' {
		return asText(textOf(part))
	}
	var one sdk.CallToolResult
	whole := append(append([]byte(`{"content":[`), part...), "]}"...)
	if stdjson.Unmarshal(whole, &one) == nil {
		switch one.Content[0].(type) {
		case *sdk.TextContent, *sdk.ImageContent, *sdk.AudioContent, *sdk.EmbeddedResource, *sdk.ResourceLink:
			return part, nil
		}
	}
	json.Unmarshal(part, &f)
	switch kind := textOf(f.Type); kind {
	case "text", "":
		if f.Text != nil { // another value than a text
			return asText(string(f.Text))
		}
		return asText("(a part that cannot be read is left out)")
	case "image", "audio", "resource":
		return nil, device.Faultf(device.Invalid, "it answered with what is no %s", kind)
	case "resource_link":
		return asText("(a link is left out)")
	default:
		return asText("(a part of the type " + device.Clip(kind, 40) + " is left out)")
	}
}

// textOf returns a JSON text; "" for another value.
func textOf(v jsontext.Value) (text string) {
	json.Unmarshal(v, &text)
	return text
}
