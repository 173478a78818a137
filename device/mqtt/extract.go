package mqtt

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

const (
	maxPayload = 32 << 10 // bytes of a message
	maxDepth   = 16       // of JSON
	maxText    = 256      // bytes of a text that is a value
)

// document finds the values of points in the JSON messages of one topic.
type document struct {
	paths  driver.Paths
	points []int // whose values the paths are, in their order; a point with a unit path has two
}

// documents returns the documents of all topics with JSON messages.
func documents(points []point) (map[string]document, error) {
	paths := make(map[string][]driver.Path)
	all := make(map[string]document)
	for i, p := range points {
		if p.path == "" {
			continue
		}
		d := all[p.topic]
		d.points, paths[p.topic] = append(d.points, i), append(paths[p.topic], p.path)
		if p.unitPath != "" {
			d.points, paths[p.topic] = append(d.points, i), append(paths[p.topic], p.unitPath)
		}
		all[p.topic] = d
	}
	for topic, d := range all {
		var err error
		if d.paths, err = driver.NewPaths(paths[topic]); err != nil {
			return nil, err
		}
		all[topic] = d
	}
	return all, nil
}

// plain returns the value of a message that is no JSON document as a JSON text, without the spaces around it; nil for
// one that is empty, too long or not printable.
func plain(message []byte) jsontext.Value {
	message = bytes.TrimSpace(message)
	if len(message) == 0 || len(message) > maxText || !isPrintable(message) {
		return nil
	}
	raw, _ := jsontext.AppendQuote(nil, message)
	return raw
}

func isPrintable(text []byte) bool {
	return strings.ToValidUTF8(string(text), "") == string(text) &&
		!strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r == 0x7f })
}

// decode returns the point's value of what a message says. Its own words for on and off come before the usual ones.
func (p point) decode(raw jsontext.Value) (device.Value, error) {
	v, err := p.usual(raw)
	if p.on == "" && p.off == "" || len(raw) == 0 {
		return v, err
	}
	switch text := word1(raw); {
	case p.on != "" && text == p.on:
		return device.Bool(true), nil
	case p.off != "" && text == p.off:
		return device.Bool(false), nil
	case err == nil && (v.Bool() && p.on != "" || !v.Bool() && p.off != ""):
		return device.Value{}, device.Faultf(device.Offline, "it says %s, which is neither on nor off",
			driver.QuoteWord(text))
	}
	return v, err
}
