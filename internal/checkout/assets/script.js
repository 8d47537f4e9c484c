(function () {
'use strict';
var live = document.getElementById('live');
var stream, poll, ticking, busy, again;

function page() { return document.getElementById('page'); }
function all(selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); }

// Shows the page's present state without reloading it. A failed request is tried
// again, as each event is sent once.
function refresh() {
  if (busy) return busy;
  clearTimeout(again);
  busy = fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' }).then(function (answer) {
    return answer.ok ? answer.text() : Promise.reject(answer.status);
  }).then(function (text) {
    var next = new DOMParser().parseFromString(text, 'text/html');
    var fresh = next.getElementById('page'), old = page();
    if (!fresh || fresh.dataset.version === old.dataset.version && fresh.dataset.version) return;
    document.title = next.title;
    old.replaceWith(document.adoptNode(fresh));
    begin();
    var heading = document.getElementById('heading');
    if (heading) heading.focus({ preventScroll: true });
    live.textContent = fresh.dataset.updated + (heading ? ': ' + heading.textContent : '');
    window.scrollTo(0, 0);
  }).catch(function (why) { if (why !== 404) again = setTimeout(refresh, 3000); }).then(function () { busy = null; });
  return busy;
}

// Waits for server-sent events; polls if they fail.
function watch() {
  var at = page().dataset;
  if (stream) { stream.close(); stream = null; }
  clearInterval(poll);
  if (!at.stream) return;
  function ask() {
    fetch(at.state, { cache: 'no-store' }).then(function (answer) { return answer.json(); }).then(function (state) {
      if (String(state.version) !== page().dataset.version) refresh();
    }).catch(function () { });
  }
  function fallBack() { clearInterval(poll); poll = setInterval(ask, 5000); }
  if (!window.EventSource) return fallBack();
  stream = new EventSource(at.stream);
  stream.addEventListener('change', refresh);
  stream.onopen = function () { clearInterval(poll); };
  stream.onerror = fallBack;
}

function countDown() {
  clearInterval(ticking);
  var clock = document.querySelector('[data-until]');
  if (!clock) return;
  var ahead = Date.now() - Number(clock.dataset.now), until = Number(clock.dataset.until), tries = 0;
  function two(n) { return (n < 10 ? '0' : '') + n; }
  function tick() {
    var left = Math.ceil((until - (Date.now() - ahead)) / 1000);
    var s = Math.max(left, 0), days = Math.floor(s / 86400);
    clock.textContent = (days ? days + 'd ' : '') + two(Math.floor(s / 3600) % 24) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60);
    if (left <= 0 && tries++ % 5 === 1) location.pathname && refreshNow();
  }
  clock.closest('[hidden]') && (clock.closest('[hidden]').hidden = false);
  tick();
  ticking = setInterval(tick, 1000);
}

// When an order's time is over its page changes before its version does.
function refreshNow() {
  page().removeAttribute('data-version');
  refresh();
}

function copied(button, text) {
  var label = button.querySelector('span');
  if (!button.dataset.label) button.dataset.label = label.textContent;
  label.textContent = live.textContent = text;
  clearTimeout(button.timer);
  button.timer = setTimeout(function () { label.textContent = button.dataset.label; live.textContent = ''; }, 2500);
}

function copy(button) {
  var field = document.getElementById(button.dataset.copy), text = field.dataset.bare || field.textContent;
  function byHand() {
    getSelection().selectAllChildren(field);
    var done = false;
    try { done = document.execCommand('copy'); } catch (e) { done = false; }
    copied(button, done ? button.dataset.done : button.dataset.failed);
  }
  if (!navigator.clipboard) return byHand();
  navigator.clipboard.writeText(text).then(function () { copied(button, button.dataset.done); }, byHand);
}

// Card brands, the more particular first.
var elo = /^(40117[89]|438935|45763[12]|431274|451416|457393|504175|5067|5090|627780|636297|636368|6500[3-5]|6504|6505|6507|6509|6516|6550)/;
function brandOf(digits) {
  if (elo.test(digits)) return 'Elo';
  if (/^606282/.test(digits)) return 'Hipercard';
  if (/^3[47]/.test(digits)) return 'Amex';
  if (/^(5[1-5]|2(22[1-9]|2[3-9]|[3-6]|7[01]|720))/.test(digits)) return 'Mastercard';
  return /^4/.test(digits) ? 'Visa' : '';
}

function passes(digits) {
  for (var sum = 0, i = 0; i < digits.length; i++) {
    var d = Number(digits[digits.length - 1 - i]) * (i % 2 + 1);
    sum += d > 9 ? d - 9 : d;
  }
  return sum % 10 === 0;
}

function typed(form) {
  var number = form.querySelector('#number'), error = form.querySelector('#number-error');
  var digits = number.value.replace(/\D/g, '').slice(0, 19), brand = brandOf(digits), length = brand === 'Amex' ? 15 : 16;
  var atEnd = number.selectionStart === number.value.length;
  if (atEnd) number.value = brand === 'Amex' ? digits.replace(/^(\d{4})(\d{1,6})?(\d+)?$/, function (_, a, b, c) { return [a, b, c].filter(Boolean).join(' '); }) : digits.replace(/(\d{4})(?=\d)/g, '$1 ');
  form.querySelector('#brand').textContent = brand;
  var wrong = digits.length >= length && (digits.length > length || !passes(digits));
  error.textContent = wrong ? form.dataset.number : '';
  number.setAttribute('aria-invalid', wrong);
  number.closest('.field').classList.toggle('invalid', wrong);
}

function begin() {
  watch();
  countDown();
  all('form[data-card]').forEach(function (form) {
    if (form.querySelector('[aria-invalid=true]')) form.querySelector('[aria-invalid=true]').focus();
  });
}

document.addEventListener('input', function (e) {
  var form = e.target.closest('form[data-card]');
  if (!form) return;
  if (e.target.id === 'number') return typed(form);
  if (e.target.id === 'expiry' && e.data && e.target.value.replace(/\D/g, '').length > 2) e.target.value = e.target.value.replace(/\D/g, '').slice(0, 4).replace(/^(..)/, '$1/');
  var field = e.target.closest('.invalid');
  if (field) {
    field.classList.remove('invalid');
    field.querySelector('.field-error').textContent = '';
    e.target.removeAttribute('aria-invalid');
  }
});

document.addEventListener('click', function (e) {
  var button = e.target.closest('button');
  if (!button) return;
  if (button.dataset.copy) copy(button);
  else if ('print' in button.dataset) window.print();
  else if (button.dataset.number) {
    var number = document.getElementById('number');
    number.value = button.dataset.number;
    typed(number.form);
    number.focus();
  }
});

// A form is sent once. Forms of the strip are sent in the background, and then the page is refreshed.
document.addEventListener('submit', function (e) {
  var form = e.target;
  if (form.dataset.sent) return e.preventDefault();
  form.dataset.sent = '1';
  if ('quiet' in form.dataset) {
    e.preventDefault();
    all('.strip button').forEach(function (b) { b.disabled = true; });
    fetch(form.action, { method: 'POST', redirect: 'manual' }).catch(function () { }).then(refreshNow).then(function () {
      setTimeout(function () { all('.strip button').forEach(function (b) { b.disabled = false; b.form.dataset.sent = ''; }); }, 500);
    });
    return;
  }
  if (form.dataset.busy) {
    var button = form.querySelector('.button');
    button.disabled = true;
    button.querySelector('span').textContent = form.dataset.busy;
  }
});

// A page restored from the browser's cache is outdated.
window.addEventListener('pageshow', function (e) { if (e.persisted) location.reload(); });

begin();
})();
