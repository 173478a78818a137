package notify

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"agentsite/device"
	"agentsite/node/occurrence"
	"agentsite/node/outbox"

	"github.com/go-json-experiment/json"
)

// printable accepts what a message may have of others: no control characters, no line ends, and nothing
// that changes the direction of a text.
func printable(r rune) bool { return unicode.IsPrint(r) && !unicode.Is(unicode.Bidi_Control, r) }

// signInTime is the time after which a message about a sign-in is dropped.
const signInTime = 10 * time.Minute

// item returns an occurrence in words for people.
func (a *Agent) item(o occurrence.Occurrence) outbox.Item {
	i := outbox.Item{
		ID: o.ID, Key: o.Key(), Kind: string(o.Kind), At: o.At, Sure: o.Sure,
		Begins: o.State == occurrence.Begins, Ends: o.State == occurrence.Ends,
	}
	title := ""
	switch o.Kind {
	case occurrence.Stop:
		i.Urgent, i.Link = true, a.link("house", "")
		title, i.Text = "emergency stop", "All outputs go to safe, and stay there until an owner resets the stop."
		if i.Ends {
			title, i.Text = "the stop is reset", "Outputs can be moved again."
		}
	case occurrence.Device:
		i.Link = a.link("site", "")
		title, i.Text = o.Of+" is lost", "No good reading of "+o.Of+" came for half a minute or longer"+because(o.Because)+"."
		if i.Ends {
			title, i.Text = o.Of+" is back", "It is read again."
		}
		if i.Ends && o.Because == occurrence.Removed {
			title, i.Text = o.Of+" is removed", "It is not in the configuration any more."
		}
	case occurrence.Lease:
		i.Link = a.link("why", "&p="+url.QueryEscape(o.Of))
		title = o.Of + " returned to safe"
		i.Text = fmt.Sprintf("%s held it, and not until the end%s.", a.name(o.Who), because(o.Because))
	case occurrence.Effect:
		i.Urgent, i.Link = true, a.link("why", "&p="+url.QueryEscape(o.Of))
		title = o.Of + " has no effect"
		i.Text = fmt.Sprintf("%s moved it, and what a sensor has to show did not come. It is back at safe.", a.name(o.Who))
		if o.Because == "" {
			i.Text = fmt.Sprintf("%s moved it, and what a sensor has to show does not come. It is still away from safe.",
				a.name(o.Who))
		}
	case occurrence.Approval:
		i.Urgent, i.Passing, i.Until = true, true, time.Now().Add(o.Left)
		i.Link = a.link("waiting", "&call="+url.QueryEscape(o.Of))
		title = a.name(o.Who) + " asks you"
		i.Text = fmt.Sprintf("It wants to %s. It waits for %s: answer on the page, or with agentsite approve.",
			wish(o.Tool, o.Args), device.FormatDuration(o.Left.Round(time.Second)))
	case occurrence.SignIn:
		i.Passing, i.Until = true, time.Now().Add(signInTime)
		i.Link = a.link("waiting", "")
		title = "a program asks to sign in"
		i.Text = "Somebody opened the page of this site on which a program signs in. If it was you, answer on the page, or with agentsite approve; otherwise leave it."
	case occurrence.Wish:
		i.Passing, i.Until = true, time.Now().Add(o.Left)
		i.Link = a.link("waiting", "")
		title = a.name(o.Who) + " asks for more"
		i.Text = fmt.Sprintf("It wanted to %s, which its permission does not have. Allow more on the page, or with agentsite approve.", wish(o.Tool, o.Args))
	case occurrence.Supply:
		i.Link = a.link("site", "")
		title = "the power supply is too weak"
		i.Text = "The board finds its supply too weak (under-voltage): it may slow down, restart or damage its card. Use " +
			"the supply that is made for it, and a short, thick cable."
		if i.Ends {
			title, i.Text = "the power supply is strong enough", "No under-voltage for ten minutes."
		}
	case occurrence.PowerOff:
		i.Urgent, i.Link = true, a.link("site", "")
		title = "the machine is powered off soon"
		i.Text = fmt.Sprintf("In %s%s. All outputs go to safe. It starts again when its supply is switched on.",
			device.FormatDuration(o.Left.Round(time.Second)), because(o.Because))
		if i.Ends {
			title, i.Text = "the machine stays on", "Its condition is not true any more"+because(o.Because)+"."
		}
	case occurrence.Rollback:
		i.Link = a.link("site", "")
		title = "a change was not kept"
		i.Text = "The site runs without it" + because(o.Because) + "."
	case occurrence.Permission:
		i.Link = a.link("access", "")
		title = "a permission ends"
		i.Text = fmt.Sprintf("That of %s ends in %s.", a.name(o.Who), device.FormatDuration(o.Left.Round(time.Hour)))
	}
	i.Title = a.world.Site + ": " + title
	return i
}

func because(why string) string {
	if why = plain(why, maxBecause); why == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(why, ".")
}

// wish says what a call would do, as far as the names and values of this site say it. Free texts of the
// caller are left out.
func wish(tool string, args []byte) string {
	var of struct {
		Output string       `json:"output"`
		Value  device.Value `json:"value"`
		On     *bool        `json:"on"`
		For    float64      `json:"for_seconds"`
		Agent  string       `json:"agent"`
	}
	err := json.Unmarshal(args, &of)
	switch {
	case err == nil && of.Output != "":
		value := of.Value.String()
		if of.On != nil {
			value = device.Bool(*of.On).String()
		}
		text := "set " + plain(of.Output, 60) + " to " + plain(value, 40)
		if of.For > 0 && of.For < 1e6 {
			text += " for " + device.FormatDuration(time.Duration(of.For*float64(time.Second)))
		}
		return text
	case err == nil && of.Agent != "":
		return "ask " + plain(of.Agent, 60)
	}
	return "call " + plain(tool, 40)
}

// subject and body are a message in words: that of one item, or a list.
func subject(site string, m outbox.Message) string {
	if len(m.Items) == 1 && m.More == 0 {
		return times(m.Items[0].Title, m.Items[0].Count)
	}
	sum := m.More
	for _, i := range m.Items {
		sum += i.Count
	}
	return fmt.Sprintf("%s: %d messages", site, sum)
}

// maxLines bounds the items of a text; all others are counted.
const maxLines = 12

func body(m outbox.Message, now time.Time) string {
	if len(m.Items) == 1 && m.More == 0 {
		return m.Items[0].Text + clock(m.Items[0], now)
	}
	var lines []string
	left := m.More
	for n, i := range m.Items {
		if n >= maxLines {
			left += i.Count
			continue
		}
		_, title, _ := strings.Cut(i.Title, ": ")
		lines = append(lines, "• "+times(title, i.Count)+". "+i.Text+clock(i, now))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("• and %d more: agentsite journal", left))
	}
	return strings.Join(lines, "\n")
}

func times(text string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s (%d times)", text, n)
	}
	return text
}

// clock returns when it was, where it is told late and the time was known.
func clock(i outbox.Item, now time.Time) string {
	if !i.Sure || now.Sub(i.At).Abs() < 2*time.Minute {
		return ""
	}
	return " (" + i.At.UTC().Format("2006-01-02 15:04") + " UTC)"
}
