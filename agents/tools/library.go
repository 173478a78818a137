package tools

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/skill"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const mimeJSON = "application/json"

// pointTemplate is the URI template of a site's points.
var pointTemplate = agents.PointURI("{device}/{point}")

// Library is the resources and prompts of a site, as MCP servers offer them. A Catalog is one.
type Library interface {
	// Resources lists the resources that p may read, and Templates the URI templates of more.
	Resources(ctx context.Context, p agents.Principal) ([]Resource, error)
	Templates(ctx context.Context, p agents.Principal) ([]Template, error)
	// ReadResource returns the contents of a URI, or ErrNotFound.
	ReadResource(ctx context.Context, p agents.Principal, uri string) ([]ResourceContent, error)
	// Prompts lists the prompts that p may start a conversation with.
	Prompts(ctx context.Context, p agents.Principal) ([]Prompt, error)
	// Prompt writes a prompt out, or returns ErrNotFound.
	Prompt(ctx context.Context, p agents.Principal, name string, args map[string]string, ex Exchange) (PromptResult, error)
	// Complete completes an argument of a prompt or a template.
	Complete(ctx context.Context, p agents.Principal, ref Reference, argument, prefix string) (Completions, error)
}

var _ Library = (*Catalog)(nil)

// Resources lists the points of the site, and its skills.
func (c *Catalog) Resources(ctx context.Context, p agents.Principal) ([]Resource, error) {
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return nil, err
	}
	var list []Resource
	for _, address := range o.Read {
		list = append(list, Resource{
			URI: agents.PointURI(address), Name: address, Description: o.Descriptions[address], MIME: mimeJSON,
		})
	}
	skills, err := c.SkillsOf(ctx, p)
	for _, s := range skills {
		list = append(list, Resource{URI: s.Entry.URI, Name: s.Name, Description: s.Description, MIME: skill.MIME})
	}
	return list, err
}

// Templates lists the URI template of the points of one site.
func (c *Catalog) Templates(ctx context.Context, p agents.Principal) ([]Template, error) {
	o, err := c.site.Offer(ctx, p)
	if err != nil || len(o.Read) == 0 || o.Sites != nil {
		return nil, err
	}
	return []Template{
		{URITemplate: pointTemplate, Name: "point", Title: "A point's latest reading", MIME: mimeJSON},
	}, nil
}

// SkillsOf returns the skills for p: all of them for a caller of any tool, none for others.
func (c *Catalog) SkillsOf(ctx context.Context, p agents.Principal) ([]skill.Skill, error) {
	if c.Skills == nil {
		return nil, nil
	}
	if callable, err := c.Tools(ctx, p); err != nil || len(callable) == 0 {
		return nil, err
	}
	return c.Skills(), nil
}

// Skill returns the skill whose file has a URI, or ErrNotFound.
func (c *Catalog) Skill(ctx context.Context, p agents.Principal, uri string) (s skill.Skill, err error) {
	all, err := c.SkillsOf(ctx, p)
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(all, func(s skill.Skill) bool { return s.Entry.URI == uri })
	if i < 0 {
		return s, ErrNotFound
	}
	return all[i], nil
}

// ReadResource reads a point or a skill.
func (c *Catalog) ReadResource(ctx context.Context, p agents.Principal, uri string) ([]ResourceContent, error) {
	if skill.IsURI(uri) {
		s, err := c.Skill(ctx, p, uri)
		if err != nil {
			return nil, err
		}
		return []ResourceContent{{URI: uri, MIME: skill.MIME, Text: s.Text}}, nil
	}
	address, ok := agents.Change{URI: uri}.Point()
	if !ok {
		return nil, ErrNotFound
	}
	res, err := c.site.Read(ctx, p, agents.ReadRequest{
		Points: []string{address}, Detail: true, Terms: agents.Terms{NoApproval: true},
	})
	switch {
	case err != nil && device.AsFault(err).Kind == device.Invalid: // the site has no such point
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case len(res.Readings) != 1:
		return nil, ErrNotFound
	}
	text, err := json.Marshal(struct {
		agents.Reading
		*agents.OutputDetail
	}{res.Readings[0], res.Readings[0].Detail})
	if err != nil {
		return nil, err
	}
	return []ResourceContent{{URI: uri, MIME: mimeJSON, Text: string(text)}}, nil
}

// Prompts lists the prompts of one site.
func (c *Catalog) Prompts(ctx context.Context, p agents.Principal) ([]Prompt, error) {
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return nil, err
	}
	return promptsOf(o), nil
}

func promptsOf(o *agents.Offer) (prompts []Prompt) {
	if o.Sites != nil {
		return nil
	}
	if o.Status {
		prompts = append(prompts, Prompt{
			Name: "check_up", Title: "Check up",
			Description: "Look the whole site over and say what needs attention.",
		})
	}
	if len(o.History) > 0 {
		prompts = append(prompts, Prompt{
			Name: "overnight", Title: "What happened overnight?",
			Description: "Tell the story of the last twelve hours.",
			Arguments: []Argument{{
				Name: "point", Description: "which point; all of them when left out",
			}},
		})
	}
	return prompts
}

// Prompt writes a prompt out, or returns ErrNotFound.
func (c *Catalog) Prompt(ctx context.Context, p agents.Principal, name string, args map[string]string, _ Exchange) (PromptResult, error) {
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return PromptResult{}, err
	}
	prompts := promptsOf(o)
	i := slices.IndexFunc(prompts, func(p Prompt) bool { return p.Name == name })
	if i < 0 {
		return PromptResult{}, ErrNotFound
	}
	text := "Call site_status and read_points. Say in a few plain sentences how the site is. " +
		"Name every device with a fault and what its owner can check, and every output that is away from its safe value and why that may be."
	if name == "overnight" {
		which := "every measurement and output that list_points shows"
		if point := args["point"]; point != "" {
			if !slices.Contains(o.History, point) {
				return PromptResult{}, device.Faultf(device.Invalid, "point: there is none named %.60q with a history here", point)
			}
			which = point
		}
		text = "Call read_history for " + which + " over the last 12 hours. Tell what happened overnight in a few plain sentences: " +
			"the lowest and highest value and when, how it went, which outputs moved, and anything that looks unusual. Give units."
	}
	return PromptResult{
		Description: prompts[i].Description,
		Messages:    []Message{{Role: "user", Content: Content{Text: text}}},
	}, nil
}

// Complete completes an argument of a prompt or a template.
func (c *Catalog) Complete(ctx context.Context, p agents.Principal, ref Reference, argument, prefix string) (out Completions, err error) {
	o, err := c.site.Offer(ctx, p)
	if err != nil {
		return out, err
	}
	all := []string{}
	switch {
	case o.Sites != nil:
	case ref.Prompt == "overnight" && argument == "point":
		all = append(all, o.History...)
	case ref.URITemplate == pointTemplate && (argument == "device" || argument == "point"):
		for _, address := range o.Read {
			d, name, _ := device.SplitAddress(address)
			if argument == "device" {
				name = d
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	return Completions{all[:min(len(all), maxCompletions)], len(all), len(all) > maxCompletions}, nil
}
