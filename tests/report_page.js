// report_page.js: runs inside a report page that tests/report.t has opened, at the width of its frame, and tells the
// page around what is wrong with it: overflow, texts that are cut off or lie over each other, marks without a tip.
addEventListener('load', function () {
    var bad = [], root = document.documentElement, marks = 0;
    if (root.dataset.script !== 'ready') bad.push('the script did not run');
    if (root.scrollWidth > innerWidth) bad.push('the page is ' + root.scrollWidth + ' px wide in ' + innerWidth);
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
    if (root.scrollWidth > innerWidth) bad.push('opened, the page is ' + root.scrollWidth + ' px wide');
    document.querySelectorAll('svg').forEach(function (svg) {
        var frame = svg.getBoundingClientRect(), name = svg.getAttribute('aria-label');
        var texts = Array.from(svg.querySelectorAll('text')).map(function (t) {
            return { text: t.textContent, box: t.getBoundingClientRect(), turned: t.closest('g[transform]') };
        });
        texts.forEach(function (a) {
            if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1 || a.box.top < frame.top - 1 ||
                a.box.bottom > frame.bottom + 1) bad.push(name + ': "' + a.text + '" is cut off');
        });
        var level = texts.filter(function (a) { return !a.turned; });
        for (var i = 0; i < level.length; i++)
            for (var k = i + 1; k < level.length; k++) {
                var a = level[i].box, b = level[k].box;
                if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
                    bad.push(name + ': "' + level[i].text + '" lies over "' + level[k].text + '"');
            }
    });
    document.querySelectorAll('main .row, main h2, main h3, .figures div').forEach(function (e) {
        if (e.scrollWidth > e.clientWidth + 1) bad.push('"' + e.textContent + '" does not fit');
    });
    var charts = document.querySelectorAll('.chart'), tip = document.getElementById('tip');
    charts.forEach(function (chart) {
        var mark = chart.querySelectorAll('[data-tip]'), last = mark[mark.length - 1], box;
        marks += mark.length;
        if (!mark.length) return bad.push(chart.getAttribute('aria-label') + ': there is no mark');
        chart.focus();
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
        if (tip.hidden || tip.textContent !== mark[0].dataset.tip) bad.push('no tip: ' + mark[0].dataset.tip);
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }));
        if (tip.hidden || tip.textContent !== last.dataset.tip) bad.push('no tip backwards: ' + last.dataset.tip);
        box = tip.getBoundingClientRect();
        if (box.left < 0 || box.right > innerWidth + 1) bad.push('the tip leaves the page: ' + tip.textContent);
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
        if (!tip.hidden) bad.push('Escape leaves the tip');
        mark[0].dispatchEvent(new PointerEvent('pointermove', { bubbles: true, pointerType: 'mouse', clientX: 50, clientY: 50 }));
        if (tip.hidden || tip.textContent !== mark[0].dataset.tip) bad.push('no tip under the pointer');
        document.body.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, pointerType: 'mouse' }));
        if (!tip.hidden) bad.push('the tip stays behind');
    });
    if (document.querySelector('.chart title')) bad.push('a title is left beside the tip');
    bad = bad.filter(function (text, i) { return bad.indexOf(text) === i; }).slice(0, 8);
    parent.postMessage(location.pathname.replace(/.*\//, '') + ' ' + innerWidth + ' ' +
        (charts.length && marks ? '' : 'no charts ') + (bad.length ? bad.join(' | ') : 'good'), '*');
});
