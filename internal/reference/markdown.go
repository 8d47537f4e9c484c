package reference

import (
	"html"
	"html/template"
	"regexp"
	"strings"
)

// Marks inside a line, of escaped text.
var (
	codeMark = regexp.MustCompile("`([^`]+)`")
	boldMark = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	linkMark = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
)

// markdown is text as HTML, for the part of Markdown that the contract and the page of errors
// use: headings, paragraphs, lists, tables, blocks of code, `code`, **bold** and links. A link is
// shown as its text: it leads to a page that the gateway does not serve.
func markdown(text string) template.HTML {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(fenced(text)), "\n\n") {
		block = strings.Trim(block, "\n")
		switch {
		case block == "":
		case strings.HasPrefix(block, "```"):
			_, code, _ := strings.Cut(block, "\n")
			code = strings.ReplaceAll(strings.TrimSuffix(code, "\n```"), blank, "")
			out.WriteString("<pre>" + html.EscapeString(code) + "</pre>")
		case strings.HasPrefix(block, "#"):
			first, rest, _ := strings.Cut(block, "\n")
			out.WriteString(heading(first) + string(markdown(rest)))
		case strings.HasPrefix(block, "- "):
			out.WriteString("<ul>")
			for item := range strings.SplitSeq(block[2:], "\n- ") {
				out.WriteString("<li>" + inline(item) + "</li>")
			}
			out.WriteString("</ul>")
		case strings.HasPrefix(block, "|"):
			out.WriteString(table(block))
		default:
			out.WriteString("<p>" + inline(block) + "</p>")
		}
	}
	return template.HTML(out.String())
}

// blank stands for nothing in a line of a block of code that would end the block.
const blank = "\x00"

// fenced marks the empty lines of blocks of code.
func fenced(text string) string {
	parts := strings.Split(text, "```")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "\n\n", "\n"+blank+"\n")
	}
	return strings.Join(parts, "```")
}

// heading has the id that a link to it names: its text.
func heading(line string) string {
	text := strings.TrimLeft(line, "#")
	tag := "h" + string(rune('0'+len(line)-len(text)))
	text = strings.TrimSpace(text)
	return "<" + tag + ` id="` + html.EscapeString(strings.ReplaceAll(text, " ", "-")) + `">` + inline(text) + "</" + tag + ">"
}

// table shows the rows of a table, without the line that underlines its header.
func table(block string) string {
	var out strings.Builder
	out.WriteString("<table>")
	for i, line := range strings.Split(block, "\n") {
		if i == 1 {
			continue
		}
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		out.WriteString("<tr>")
		for cell := range strings.SplitSeq(strings.Trim(line, "| "), "|") {
			out.WriteString("<" + tag + ">" + inline(strings.TrimSpace(cell)) + "</" + tag + ">")
		}
		out.WriteString("</tr>")
	}
	out.WriteString("</table>")
	return out.String()
}

// inline escapes text, and shows its marks.
func inline(text string) string {
	text = linkMark.ReplaceAllString(html.EscapeString(text), "$1")
	text = boldMark.ReplaceAllString(text, "<strong>$1</strong>")
	return codeMark.ReplaceAllString(text, "<code>$1</code>")
}
