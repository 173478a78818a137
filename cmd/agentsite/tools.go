package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/cmd/internal/site"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

func (a *app) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tools", GroupID: groupAgents, Args: noArgs,
		Short: "List the tools that agents are offered",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(func(s *session) error {
				list, err := s.tools(cmd.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(toolsResult{list})
				}
				var rows [][]string
				for _, t := range list {
					first := firstSentence(t.Description)
					rows = append(rows, []string{t.Name, arguments(t), strings.TrimSuffix(first, ".")})
				}
				return table(a.out, []string{"TOOL", "ARGUMENTS", "WHAT IT DOES"}, rows)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

type toolsResult struct {
	Tools []client.Tool `json:"tools"`
}

func (s *session) tools(ctx context.Context) ([]client.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.Tools(ctx)
	return list, s.app.unreached(err)
}

// arguments lists a tool's, those first that it needs and the others in brackets.
func arguments(t client.Tool) string {
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if t.Input.Decode(&schema) != nil {
		return "?"
	}
	all := schema.Required
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if !slices.Contains(schema.Required, name) {
			all = append(all, "["+name+"]")
		}
	}
	return strings.Join(all, " ")
}

func (a *app) callCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use: "call TOOL [JSON]", GroupID: groupAgents,
		Short: "Call a tool as an agent would",
		Long: `Call a tool as an agent would, with a JSON object of arguments: as a word, or from
standard input for "-". It prints the structured result.`,
		Example: `  agentsite call read_points '{"points":["greenhouse/temperature"]}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"TOOL", "JSON"}[:max(1, min(len(args), 2))]...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			args, err := a.jsonObject(words[1:])
			if err != nil {
				return err
			}
			return a.with(func(s *session) error {
				res, err := s.call(cmd.Context(), words[0], args)
				var refused *rpc.Error
				if errors.As(err, &refused) && refused.Code == rpc.CodeInvalidParams {
					return fmt.Errorf("%w (agentsite tools)", err)
				}
				if err != nil {
					return err
				}
				return a.printResult(res, picture)
			})
		},
		ValidArgsFunction: a.completeTools,
	}
	cmd.Flags().StringVar(&picture, "out", "", "save the picture or sound that comes with the result in this file")
	return cmd
}

// jsonObject reads a tool's arguments. They go out as they are written.
func (a *app) jsonObject(words []string) (jsontext.Value, error) {
	text := "{}"
	if len(words) == 1 {
		text = words[0]
	}
	if text == "-" {
		const most = 1 << 20 // more than a site reads
		b, err := io.ReadAll(io.LimitReader(a.in, most))
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	v := jsontext.Value(text)
	if err := v.Compact(); err != nil || v.Kind() != '{' {
		return nil, usagef(`the arguments are a JSON object, such as '{"points":["greenhouse/temperature"]}', not %.60q`, text)
	}
	return v, nil
}

// printResult prints what a tool answered, and saves its first picture or sound
// where a file is named.
func (a *app) printResult(res agents.Result, file string) error {
	raw := structured(res)
	switch {
	case raw.IsZero():
	case a.json:
		if err := a.printRaw(raw); err != nil {
			return err
		}
	default:
		text, err := raw.JSONText()
		if err != nil {
			return err
		}
		v := jsontext.Value(text).Clone()
		if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		fmt.Fprintln(a.out, cleanLines(string(v)))
	}
	var blobs []*agents.Blob
	for _, c := range res.Content {
		switch {
		case c.Image != nil:
			blobs = append(blobs, c.Image)
		case c.Audio != nil:
			blobs = append(blobs, c.Audio)
		case raw.IsZero(): // or it says the same again
			fmt.Fprintln(a.out, cleanLines(c.Text))
		}
	}
	return a.save(blobs, file)
}

func (a *app) save(blobs []*agents.Blob, file string) error {
	switch {
	case len(blobs) == 0 && file != "":
		return coded{exitFailure, fmt.Errorf("nothing came that could be saved in %s", file)}
	case len(blobs) == 0:
		return nil
	case file == "":
		_, err := fmt.Fprintf(a.errs, "agentsite: %s came with it (%s): save it with --out FILE\n", clean(blobs[0].MIME), byteSize(float64(len(blobs[0].Data))))
		return err
	}
	return os.WriteFile(file, blobs[0].Data, 0o600)
}

func (a *app) connectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "connect", GroupID: groupAgents, Args: noArgs,
		Short: "Speak MCP on standard input and output, for an MCP client",
		Long: `Carry MCP between standard input and output and the site that runs on this
machine. An MCP client starts this command; it opens no hardware.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("connect"); err != nil {
				return err
			}
			folder, err := a.folder()
			if err != nil {
				return err
			}
			if err := site.Connect(cmd.Context(), folder, a.in, a.out); err != nil {
				return a.undialled(err)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// firstSentence is enough of a description for a list.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}
