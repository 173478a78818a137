package things

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mistake is an error in a part of a description.
type Mistake struct {
	Field       string `json:"field"` // dotted path; "(root)" for the whole
	Description string `json:"description"`
}

// Invalid is the error of a description that is not stored.
type Invalid []Mistake

func (e Invalid) Error() string {
	return fmt.Sprintf("the description does not fit: %s: %s", e[0].Field, e[0].Description)
}

func mistake(field, description string) Invalid { return Invalid{{field, description}} }

const maxMistakes = 16

// contexts are those of Thing Description 1.1 and 1.0, and discovery that of enriched ones.
var contexts = []string{"https://www.w3.org/2022/wot/td/v1.1", "https://www.w3.org/2019/wot/td/v1"}

const discovery = "https://www.w3.org/2022/wot/discovery"

const maxID = 256

// checkID accepts an absolute URI. It has a colon, which names of the site's own devices do not
// have.
func checkID(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
	})
}

// checker collects the mistakes of a description.
type checker struct{ found Invalid }

func (c *checker) fail(field, description string) {
	if len(c.found) < maxMistakes {
		c.found = append(c.found, Mistake{field, description})
	}
}

// text returns a string; "" is a mistake, too.
func (c *checker) text(field string, v jsontext.Value) (s string) {
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil || s == "" {
		c.fail(field, "must be a text that is not empty")
	}
	return s
}

// texts returns the texts of a string, or of an array with at least one.
func (c *checker) texts(field string, v jsontext.Value) (all []string) {
	if v.Kind() != '[' {
		return []string{c.text(field, v)}
	}
	var items []jsontext.Value
	if json.Unmarshal(v, &items); len(items) == 0 {
		c.fail(field, "must not be empty")
	}
	for _, item := range items {
		if item.Kind() == '"' || field != "@context" { // of which some are objects
			all = append(all, c.text(field, item))
		}
	}
	return all
}

// members returns the members of an object.
func (c *checker) members(field string, v jsontext.Value) object {
	if v.Kind() != '{' {
		c.fail(field, "must be an object")
	}
	return objectOf(v)
}

// links checks an array of objects that have an href.
func (c *checker) links(field string, v jsontext.Value, need bool) {
	var all []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &all) != nil || need && len(all) == 0 {
		c.fail(field, "must be an array of objects with href")
	}
	for i, link := range all {
		at := fmt.Sprintf("%s.%d", field, i)
		c.text(at+".href", c.members(at, link)["href"])
	}
}

// check does the minimal validation of Thing Description 1.1, of the members that consumers need.
func check(td object) Invalid {
	var c checker
	for _, name := range []string{"@context", "title", "security", "securityDefinitions"} {
		if td[name] == nil {
			c.fail("(root)", name+" is required")
		}
	}
	if v := td["@context"]; v != nil && !slices.ContainsFunc(c.texts("@context", v), func(s string) bool { return slices.Contains(contexts, s) }) {
		c.fail("@context", "must have "+contexts[0])
	}
	if v := td["id"]; v != nil && !checkID(c.text("id", v)) {
		c.fail("id", fmt.Sprintf("must be an absolute URI of at most %d characters", maxID))
	}
	if v := td["title"]; v != nil {
		c.text("title", v)
	}
	schemes := make(object)
	if v := td["securityDefinitions"]; v != nil {
		schemes = c.members("securityDefinitions", v)
	}
	for name, v := range schemes {
		at := "securityDefinitions." + name
		c.text(at+".scheme", c.members(at, v)["scheme"])
	}
	if v := td["security"]; v != nil {
		for _, name := range c.texts("security", v) {
			if schemes[name] == nil {
				c.fail("security", fmt.Sprintf("%.40q is not in securityDefinitions", name))
			}
		}
	}
	for _, kind := range []string{"properties", "actions", "events"} {
		if td[kind] == nil {
			continue
		}
		for name, v := range c.members(kind, td[kind]) {
			at := kind + "." + name
			c.links(at+".forms", c.members(at, v)["forms"], true)
		}
	}
	for _, kind := range []string{"forms", "links"} {
		if td[kind] != nil {
			c.links(kind, td[kind], false)
		}
	}
	return c.found
}
