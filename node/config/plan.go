package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Plan returns a file of the site with these devices only, for the guard's process. Comments
// and places are lost: equal devices make equal plans.
func Plan(s *Site, devices []Device) []byte {
	var b bytes.Buffer
	b.WriteString("site:\n  name: " + s.Name + "\n")
	if s.Watchdog != "" {
		b.WriteString("  watchdog: " + (&node{text: s.Watchdog}).word() + "\n")
	}
	b.WriteString("devices:\n")
	for _, d := range devices {
		write(&b, 1, d.Name, &node{shape: mapping, entries: d.entries})
	}
	return b.Bytes()
}

// plainWord matches text that needs no quotes in any place. Text that looks like another type
// was quoted in the file already.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+][A-Za-z0-9_./+-]*$|^-[0-9.]+$`) })

func (n *node) word() string {
	if n.quoted || !plainWord().MatchString(n.text) {
		return strconv.Quote(n.text)
	}
	return n.text
}

// write writes a key and its value in lines of their own.
func write(b *bytes.Buffer, level int, key string, n *node) {
	b.WriteString(strings.Repeat("  ", level) + key + ":")
	writeValue(b, level, n)
}

func writeValue(b *bytes.Buffer, level int, n *node) {
	switch {
	case n.shape == scalar:
		b.WriteString(" " + n.word() + "\n")
	case n.shape == mapping && len(n.entries) > 0:
		b.WriteByte('\n')
		for _, e := range n.entries {
			write(b, level+1, (&node{text: e.key}).word(), e.value)
		}
	case n.shape == list && len(n.entries) > 0:
		b.WriteByte('\n')
		for _, item := range n.entries {
			b.WriteString(strings.Repeat("  ", level+1) + "-")
			writeValue(b, level+2, item.value)
		}
	default:
		b.WriteString(map[shape]string{empty: "", mapping: " {}", list: " []"}[n.shape] + "\n")
	}
}
