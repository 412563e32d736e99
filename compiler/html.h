/* html.h: pieces of a page for people: escaped text, sections, charts in SVG, bars, legends.
 *
 * The page is XML as well as HTML. Nothing is said by colour alone: fills differ in pattern (html_page.c has their
 * classes), charts have labels, and each mark its figures as a <title>, which the page's script shows at once under the
 * pointer and under the arrow keys. */
#ifndef PNETC_HTML_H
#define PNETC_HTML_H

#include "base.h"

/* Text for text and quoted attributes; numbers and their units are not broken apart; what is not UTF-8, and control
 * characters, become U+FFFD. */
void html_text(Text *out, const char *text);
void html_printf(Text *out, const char *format, ...) PRINTF_LIKE(2, 3); /* the same, of the whole result */

/* From <!DOCTYPE to <main>, with style; from </main> to the end, with script. */
void html_open(Text *out, const char *title);
void html_close(Text *out);

/* A section and its one-line explanation; html_section_end closes it. */
void html_section(Text *out, const char *id, const char *title, const char *format, ...) PRINTF_LIKE(4, 5);
void html_section_end(Text *out);

/* What fills mean: pairs of class and word. */
typedef struct {
    const char *style, *word;
} LegendEntry;
void html_legend(Text *out, const LegendEntry *entry, int count);

/* A table in a box of its own, which scrolls where the page is narrow. Cells: html_cell; style NULL or "n" (number). */
void html_table(Text *out, const char *label, const char *const *column, const char *const *style, int count);
void html_cell(Text *out, const char *style, const char *format, ...) PRINTF_LIKE(3, 4);
void html_table_end(Text *out);

/* A chart of this many pixels in such a box. Coordinates are rounded to hundredths. */
void chart_open(Text *out, const char *label, double width, double height);
void chart_close(Text *out);
void chart_text(Text *out, const char *style, double x, double y, const char *format, ...) PRINTF_LIKE(5, 6);
void chart_line(Text *out, const char *style, double x1, double y1, double x2, double y2);
/* A mark with its figures. */
void chart_box(Text *out, const char *style, double x, double y, double width, double height, const char *format, ...)
    PRINTF_LIKE(7, 8);
/* Pixels of text of this size, an estimate from above. */
double chart_width(const char *text, double size);
/* The least step 1, 2 or 5 times a power of ten that divides `most` into at most `parts`. */
double chart_step(double most, int parts);
/* `text`, or its end behind two dots, in at most `most` bytes. */
const char *chart_short(Arena *arena, const char *text, int most);

/* A row of bars as wide as the page: its two labels, then html_bar from left to right, then html_bars_end. */
void html_bars(Text *out, const char *left, const char *right);
void html_bar(Text *out, const char *style, double from, double share, const char *format, ...) PRINTF_LIKE(5, 6);
void html_bar_mark(Text *out, double at, const char *format, ...) PRINTF_LIKE(3, 4); /* a line across it */
void html_bars_end(Text *out);

#endif
