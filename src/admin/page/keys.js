/*
 * keys.js -- keyboard shortcuts, and light and dark colours.
 */
const keyTable = [
    [['1', '2', '3', '4', '5', '6'], 'The views, from left to right', key =>
        location.hash = (tabs()[Number(key) - 1] || tabs()[0])[1]],
    [['/'], 'Search', () => focusOn('search')],
    [['j', 'k'], 'Next and previous link in a list', key => step(key === 'j' ? 1 : -1)],
    [['n', 'p'], 'Next and previous page', key => press(key === 'n' ? 'next' : 'previous')],
    [['t'], 'Light, dark, or system colours', () => turnTheme()],
    [['?'], 'These shortcuts', () => document.getElementById('keys').showModal()],
    [['Escape'], 'Leave the search, or return to the list', () => leave()],
];

function focusOn(id) {
    const node = document.getElementById(id);
    if (node)
        node.focus();
}

function press(id) {
    const node = document.getElementById(id);
    if (node && !node.disabled)
        node.click();
}

function step(by) {
    const links = [...document.querySelectorAll('#view tbody td:first-child a, #view .lines a, ' +
        '#view .file-head a, #view .missing a')];
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next)
        next.focus();
}

function leave() {
    if (document.activeElement && document.activeElement.id === 'search')
        document.activeElement.blur();
    else if (ui.view === 'client')
        location.hash = '#/clients';
    else if (ui.view === 'file')
        location.hash = '#/locks';
}

function onKey(event) {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping && event.key !== 'Escape' ||
        document.getElementById('keys').open)
        return;
    const row = keyTable.find(([keys]) => keys.includes(event.key));
    if (!row)
        return;
    event.preventDefault();
    row[2](event.key);
}

// ---- light and dark -------------------------------------------------------------------------

const prefersDark = matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
    const isDark = ui.theme === 'dark' || ui.theme === 'auto' && prefersDark.matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    const button = document.getElementById('theme');
    const words = {auto: 'System colours', light: 'Light colours',
        dark: 'Dark colours'}[ui.theme];
    button.textContent = {auto: '◐', light: '○', dark: '●'}[ui.theme];
    button.title = words + ' (t)';
    button.setAttribute('aria-label', words);
}

function turnTheme() {
    ui.theme = {auto: 'light', light: 'dark', dark: 'auto'}[ui.theme];
    try {
        localStorage.setItem('holdfast-theme', ui.theme);
    } catch (error) { /* it is not remembered */ }
    applyTheme();
}
