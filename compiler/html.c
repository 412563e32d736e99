/* html.c: see html.h. */
#include "html.h"

#include <math.h>
#include <string.h>

/* Bytes of the UTF-8 character that begins here; 0: none does (RFC 3629). */
static int utf8_length(const unsigned char *text)
{
    const int length = text[0] < 0x80                      ? 1
                       : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                       : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                       : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                           : 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    if (text[0] == 0xef && text[1] == 0xbf && text[2] > 0xbd) /* no character of XML */
        return 0;
    return length;
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The blank between a number and its unit: "5.50 ms", "29 %", "1.12 k". */
static bool before_unit(const char *begin, const char *at)
{
    if (*at != ' ' || at == begin || at[-1] < '0' || at[-1] > '9')
        return false;
    if (at[1] == '%')
        return true;
    return letter(at[1]) && (!letter(at[2]) || !letter(at[3]));
}

void html_text(Text *out, const char *text)
{
    for (const char *begin = text; *text;) {
        const int length = utf8_length((const unsigned char *)text);
        const char *entity = *text == '&'               ? "&amp;"
                             : *text == '<'             ? "&lt;"
                             : *text == '>'             ? "&gt;"
                             : *text == '"'             ? "&quot;"
                             : before_unit(begin, text) ? "\xc2\xa0"
                                                        : NULL;
        if (entity)
            text_append(out, entity, strlen(entity));
        else if (!length || ((unsigned char)*text < ' ' && *text != '\n') || *text == 0x7f)
            text_append(out, "\xef\xbf\xbd", 3);
        else
            text_append(out, text, (size_t)length);
        text += length ? length : 1;
    }
}

static void escaped(Text *out, const char *format, va_list args)
{
    Text text = text_new(out->arena);
    text_vprintf(&text, format, args);
    html_text(out, text.data);
}

void html_printf(Text *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
}

/* ---- page ---- */

void html_section(Text *out, const char *id, const char *title, const char *format, ...)
{
    text_printf(out, "<section id=\"%s\">\n<h2>", id);
    html_text(out, title);
    text_printf(out, "</h2>\n<p class=\"lead\">");
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</p>\n");
}

void html_section_end(Text *out)
{
    text_printf(out, "</section>\n");
}

void html_legend(Text *out, const LegendEntry *entry, int count)
{
    text_printf(out, "<p class=\"legend\">");
    for (int i = 0; i < count; i++) {
        text_printf(out,
                    "<span><svg width=\"22\" height=\"14\" aria-hidden=\"true\"><rect class=\"%s\" x=\"1\" y=\"1\" "
                    "width=\"20\" height=\"12\"/></svg>&#160;",
                    entry[i].style);
        html_text(out, entry[i].word);
        text_printf(out, "</span> ");
    }
    text_printf(out, "</p>\n");
}

static void box_open(Text *out, const char *style, const char *label)
{
    text_printf(out, "<div class=\"%s\" tabindex=\"0\" role=\"group\" aria-label=\"", style);
    html_text(out, label);
    text_printf(out, "\">");
}

void html_table(Text *out, const char *label, const char *const *column, const char *const *style, int count)
{
    box_open(out, "scroll", label);
    text_printf(out, "<table><thead><tr>");
    for (int i = 0; i < count; i++) {
        text_printf(out, "<th scope=\"col\"%s%s%s>", style[i] ? " class=\"" : "", style[i] ? style[i] : "",
                    style[i] ? "\"" : "");
        html_text(out, column[i]);
        text_printf(out, "</th>");
    }
    text_printf(out, "</tr></thead><tbody>\n");
}

void html_cell(Text *out, const char *style, const char *format, ...)
{
    text_printf(out, "<td%s%s%s>", style ? " class=\"" : "", style ? style : "", style ? "\"" : "");
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</td>");
}

void html_table_end(Text *out)
{
    text_printf(out, "</tbody></table></div>\n");
}

/* ---- charts ---- */

/* Pixels are rounded to hundredths: same bytes wherever this runs. */
static double pixel(double value)
{
    const double rounded = round(value * 100) / 100;
    return rounded == 0 ? 0 : rounded; /* no -0 */
}

void chart_open(Text *out, const char *label, double width, double height)
{
    box_open(out, "scroll chart", label);
    text_printf(out, "<svg width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", pixel(width),
                pixel(height), pixel(width), pixel(height));
    html_text(out, label);
    text_printf(out, "\">\n");
}

void chart_close(Text *out)
{
    text_printf(out, "</svg></div>\n");
}

void chart_text(Text *out, const char *style, double x, double y, const char *format, ...)
{
    text_printf(out, "<text class=\"%s\" x=\"%g\" y=\"%g\">", style, pixel(x), pixel(y));
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</text>\n");
}

void chart_line(Text *out, const char *style, double x1, double y1, double x2, double y2)
{
    text_printf(out, "<path class=\"%s\" d=\"M%g %gL%g %g\"/>\n", style, pixel(x1), pixel(y1), pixel(x2), pixel(y2));
}

void chart_box(Text *out, const char *style, double x, double y, double width, double height, const char *format, ...)
{
    text_printf(out, "<rect class=\"%s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"><title>", style, pixel(x),
                pixel(y), pixel(fmax(0, width)), pixel(fmax(0, height)));
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</title></rect>\n");
}

double chart_width(const char *text, double size)
{
    return 0.62 * size * (double)strlen(text);
}

double chart_step(double most, int parts)
{
    if (!(most > 0))
        return 1;
    const double least = most / parts, power = pow(10, floor(log10(least) + 1e-9));
    static const double factors[] = {1, 2, 5, 10};
    for (int i = 0; i < COUNT(factors); i++)
        if (power * factors[i] >= least * (1 - 1e-9))
            return power * factors[i];
    return power * 10;
}

const char *chart_short(Arena *arena, const char *text, int most)
{
    const int length = (int)strlen(text);
    return length <= most ? text : arena_printf(arena, "..%s", text + length - (most - 2));
}

/* ---- bars: percentages, so that they are as wide as the page ---- */

void html_bars(Text *out, const char *left, const char *right)
{
    text_printf(out, "<div class=\"row\"><span>");
    html_text(out, left);
    text_printf(out, "</span><span class=\"n\">");
    html_text(out, right);
    text_printf(out, "</span></div>\n<div class=\"chart\" tabindex=\"0\" role=\"group\" aria-label=\"");
    html_printf(out, "%s: %s", left, right);
    text_printf(out, "\"><svg class=\"bars\" width=\"100%%\" height=\"22\">\n");
}

void html_bar(Text *out, const char *style, double from, double share, const char *format, ...)
{
    text_printf(out, "<rect class=\"%s\" x=\"%g%%\" y=\"2\" width=\"%g%%\" height=\"18\"><title>", style,
                pixel(100 * from), pixel(100 * fmax(0, share)));
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</title></rect>\n");
}

void html_bar_mark(Text *out, double at, const char *format, ...)
{
    text_printf(out, "<rect class=\"limit\" x=\"%g%%\" y=\"0\" width=\"2\" height=\"22\"><title>", pixel(100 * at));
    va_list args;
    va_start(args, format);
    escaped(out, format, args);
    va_end(args);
    text_printf(out, "</title></rect>\n");
}

void html_bars_end(Text *out)
{
    text_printf(out, "</svg></div>\n");
}
